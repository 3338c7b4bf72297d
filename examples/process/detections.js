// A detector as a process system, in another language: process("node examples/process/detections.js")
//
// It finds the red, the green and the blue area of an image. Node's standard library is enough.

'use strict';

const readline = require('readline');
const zlib = require('zlib');

// A small PNG reader: RGB with 8 bits, as Instar sends it. A real program takes a library such as sharp.
function readPng(text) {
  const data = Buffer.from(text, 'base64');
  const [width, height, format] = [data.readUInt32BE(16), data.readUInt32BE(20), data.readUInt16BE(24)];
  if (format !== 0x0802 || data[28] !== 0) throw new Error('this small reader knows RGB with 8 bits, not interlaced');
  const packed = [];
  for (let at = 8; at < data.length;) {
    const length = data.readUInt32BE(at);
    if (data.toString('latin1', at + 4, at + 8) === 'IDAT') packed.push(data.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const raw = zlib.inflateSync(Buffer.concat(packed));
  const stride = 3 * width;
  const pixels = Buffer.alloc(stride * height);
  for (let row = 0; row < height; row++) {
    const filter = raw[row * (stride + 1)];
    for (let i = 0; i < stride; i++) {
      const here = row * stride + i;
      const left = i >= 3 ? pixels[here - 3] : 0;
      const up = row > 0 ? pixels[here - stride] : 0;
      const corner = i >= 3 && row > 0 ? pixels[here - stride - 3] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[here] = raw[row * (stride + 1) + 1 + i] + guess; // a Buffer keeps the lowest 8 bits
    }
  }
  return { width, height, pixels };
}

function paeth(left, up, corner) {
  const [a, b, c] = [left, up, corner].map((near) => Math.abs(left + up - corner - near));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function detect({ width, height, pixels }) {
  const labels = ['red', 'green', 'blue'];
  const boxes = labels.map(() => [Infinity, Infinity, -Infinity, -Infinity]);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = pixels.subarray(3 * (y * width + x), 3 * (y * width + x) + 3);
      for (let c = 0; c < 3; c++) {
        if (colour[c] - Math.max(colour[(c + 1) % 3], colour[(c + 2) % 3]) > 60) {
          const box = boxes[c]; // a box covers its pixels: it ends where the last one ends
          boxes[c] = [Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x + 1), Math.max(box[3], y + 1)];
        }
      }
    }
  }
  const shown = [0, 1, 2].filter((c) => boxes[c][2] > 0);
  return { boxes: shown.map((c) => boxes[c]), labels: shown.map((c) => labels[c]), scores: shown.map(() => 1) };
}

function say(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

say({ instar: 1, kind: 'detections', deterministic: true, version: '1' });
readline.createInterface({ input: process.stdin }).on('line', (line) => { // ends when Instar closes stdin
  const request = JSON.parse(line);
  try {
    say({ id: request.id, output: detect(readPng(request.input.png)) });
  } catch (error) {
    say({ id: request.id, error: String(error) });
  }
});
