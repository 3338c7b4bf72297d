"""What pays to be written for CUDA, in Triton: what PyTorch would read from memory and write back many times.

Every kernel does a group of rules at once, since a launch costs as much as some of them do. Images lie as RGB RGB in
8 bits; where a pixel's channels meet, four pixels are read as three words of 32 bits. `launches` starts them.
"""

from __future__ import annotations

import triton
import triton.language as tl

# --- one pixel to one pixel -------------------------------------------------------------------------


@triton.jit
def look_up(
    source, made, tables, cells, of, count, pixels, stride, moves,
    REORDER: tl.constexpr, ZONED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rule = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    pixel = at // 3
    channel = at - 3 * pixel
    value = tl.load(source + at, mask=there, other=0)
    if REORDER:
        # the channel that takes this place lies up to two bytes before or after it
        move = tl.where(channel == 0, moves % 8, tl.where(channel == 1, moves // 8 % 8, moves // 64)) - 4
        index = tl.load(source + at + move, mask=there, other=0).to(tl.int32)
    else:
        index = value.to(tl.int32)
    new = tl.load(tables + rule * 768 + index * 3 + channel)
    if ZONED:
        zone = tl.load(of + rule)
        if zone >= 0:
            inside = tl.load(cells + zone * stride + pixel % pixels, mask=there, other=0)
            new = tl.where(inside != 0, new, value)
    tl.store(made + rule * count + at, new, mask=there)


@triton.jit
def _byte(word, number: tl.constexpr):
    return (word >> (8 * number)) & 255


@triton.jit
def _unpacked(source, group, there):
    """Four pixels of three words: 4 × red, 4 × green, 4 × blue."""
    a = tl.load(source + 3 * group, mask=there, other=0)
    b = tl.load(source + 3 * group + 1, mask=there, other=0)
    c = tl.load(source + 3 * group + 2, mask=there, other=0)
    return a, b, c


@triton.jit
def _inside(cells, of, group, pixels, there, ZONED: tl.constexpr, BLOCK: tl.constexpr):
    """Four cells of a rule's mask in a word; all of them for a rule without one."""
    inside = tl.full([BLOCK], -1, tl.int32)
    if ZONED:
        zone = tl.load(of)
        if zone >= 0:
            inside = tl.load(cells + zone * pixels + group % pixels, mask=there, other=0)
    return inside


@triton.jit
def _chosen(old, new, inside, first: tl.constexpr, second: tl.constexpr, third: tl.constexpr, fourth: tl.constexpr):
    """A word's bytes, each new where its pixel is inside the zone."""
    keep = tl.where(_byte(inside, first) != 0, 0x000000FF, 0)
    keep |= tl.where(_byte(inside, second) != 0, 0x0000FF00, 0)
    keep |= tl.where(_byte(inside, third) != 0, 0x00FF0000, 0)
    keep |= tl.where(_byte(inside, fourth) != 0, -16777216, 0)
    return (new & keep) | (old & ~keep)


@triton.jit
def _packed(made, at, there, old, reds, greens, blues, inside, ZONED: tl.constexpr):
    """Three words of four pixels, stored."""
    r0, r1, r2, r3 = reds
    g0, g1, g2, g3 = greens
    b0, b1, b2, b3 = blues
    a, b, c = old
    x = r0 | (g0 << 8) | (b0 << 16) | (r1 << 24)
    y = g1 | (b1 << 8) | (r2 << 16) | (g2 << 24)
    z = b2 | (r3 << 8) | (g3 << 16) | (b3 << 24)
    if ZONED:
        x = _chosen(a, x, inside, 0, 0, 0, 1)
        y = _chosen(b, y, inside, 1, 1, 2, 2)
        z = _chosen(c, z, inside, 2, 3, 3, 3)
    tl.store(made + at, x, mask=there)
    tl.store(made + at + 1, y, mask=there)
    tl.store(made + at + 2, z, mask=there)


@triton.jit
def _mixture(r, g, b, row, table, SHIFT: tl.constexpr, TABLES: tl.constexpr):
    """One channel of one pixel: rounded, saturated, looked up."""
    total = tl.load(row) * r + tl.load(row + 1) * g + tl.load(row + 2) * b
    level = tl.minimum((total + (1 << (SHIFT - 1))) >> SHIFT, 255)
    if TABLES:
        level = tl.load(table + level * 3).to(tl.int32)
    return level


@triton.jit
def mix(
    source, made, matrices, tables, cells, of, groups, pixels,
    SHIFT: tl.constexpr, TABLES: tl.constexpr, GREY: tl.constexpr, ZONED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rule = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = group < groups
    old = _unpacked(source, group, there)
    a, b, c = old
    reds = (_byte(a, 0), _byte(a, 3), _byte(b, 2), _byte(c, 1))
    greens = (_byte(a, 1), _byte(b, 0), _byte(b, 3), _byte(c, 2))
    blues = (_byte(a, 2), _byte(b, 1), _byte(c, 0), _byte(c, 3))
    rows, table = matrices + rule * 9, tables + rule * 768
    x0 = _mixture(reds[0], greens[0], blues[0], rows, table, SHIFT, TABLES)
    x1 = _mixture(reds[1], greens[1], blues[1], rows, table, SHIFT, TABLES)
    x2 = _mixture(reds[2], greens[2], blues[2], rows, table, SHIFT, TABLES)
    x3 = _mixture(reds[3], greens[3], blues[3], rows, table, SHIFT, TABLES)
    y0, y1, y2, y3 = x0, x1, x2, x3
    z0, z1, z2, z3 = x0, x1, x2, x3
    if not GREY:
        y0 = _mixture(reds[0], greens[0], blues[0], rows + 3, table + 1, SHIFT, TABLES)
        y1 = _mixture(reds[1], greens[1], blues[1], rows + 3, table + 1, SHIFT, TABLES)
        y2 = _mixture(reds[2], greens[2], blues[2], rows + 3, table + 1, SHIFT, TABLES)
        y3 = _mixture(reds[3], greens[3], blues[3], rows + 3, table + 1, SHIFT, TABLES)
        z0 = _mixture(reds[0], greens[0], blues[0], rows + 6, table + 2, SHIFT, TABLES)
        z1 = _mixture(reds[1], greens[1], blues[1], rows + 6, table + 2, SHIFT, TABLES)
        z2 = _mixture(reds[2], greens[2], blues[2], rows + 6, table + 2, SHIFT, TABLES)
        z3 = _mixture(reds[3], greens[3], blues[3], rows + 6, table + 2, SHIFT, TABLES)
    inside = _inside(cells, of + rule, group, pixels, there, ZONED, BLOCK)
    at = rule * groups * 3 + 3 * group
    _packed(made, at, there, old, (x0, x1, x2, x3), (y0, y1, y2, y3), (z0, z1, z2, z3), inside, ZONED)


@triton.jit
def _channel(value, spread, sixth, offset: tl.constexpr):
    place = sixth + offset
    place = tl.where(place >= 6, place - 6, place)
    share = tl.minimum(tl.maximum(tl.minimum(place, 4 - place), 0.0), 1.0)
    # 1.5 · 2^23: a sum of that size has no bits behind the point, and the level in its last byte
    return (value - spread * share + 12582912.0).to(tl.int32, bitcast=True) & 255


@triton.jit
def _turned_pixel(red, green, blue, turn):
    r, g, b = red.to(tl.float32), green.to(tl.float32), blue.to(tl.float32)
    value = tl.maximum(tl.maximum(r, g), b)
    spread = value - tl.minimum(tl.minimum(r, g), b)
    scale = 1 / tl.maximum(spread, 1.0)
    sixth = tl.where(value == r, (g - b) * scale, tl.where(value == g, (b - r) * scale + 2, (r - g) * scale + 4)) + turn
    sixth = tl.where(sixth < 0, sixth + 6, sixth)
    sixth = tl.where(sixth >= 6, sixth - 6, sixth)
    return _channel(value, spread, sixth, 5), _channel(value, spread, sixth, 3), _channel(value, spread, sixth, 1)


@triton.jit
def turn_hue(source, made, turns, cells, of, groups, pixels, ZONED: tl.constexpr, BLOCK: tl.constexpr):
    rule = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = group < groups
    turn = tl.load(turns + rule)
    old = _unpacked(source, group, there)
    a, b, c = old
    r0, g0, b0 = _turned_pixel(_byte(a, 0), _byte(a, 1), _byte(a, 2), turn)
    r1, g1, b1 = _turned_pixel(_byte(a, 3), _byte(b, 0), _byte(b, 1), turn)
    r2, g2, b2 = _turned_pixel(_byte(b, 2), _byte(b, 3), _byte(c, 0), turn)
    r3, g3, b3 = _turned_pixel(_byte(c, 1), _byte(c, 2), _byte(c, 3), turn)
    inside = _inside(cells, of + rule, group, pixels, there, ZONED, BLOCK)
    at = rule * groups * 3 + 3 * group
    _packed(made, at, there, old, (r0, r1, r2, r3), (g0, g1, g2, g3), (b0, b1, b2, b3), inside, ZONED)


# --- neighbours -------------------------------------------------------------------------------------


@triton.jit
def _reflect(place, count, NEAR: tl.constexpr):
    """As `plain.reflected`. A place less than `count` beyond an end is mirrored once, which saves a division."""
    period = 2 * (count - 1)
    if NEAR:
        place = tl.maximum(place, -place)
    else:
        period = tl.maximum(period, 1)
        place = place % period
        place = tl.where(place < 0, place + period, place)
    return tl.maximum(tl.minimum(place, period - place), 0)


@triton.jit
def _level(value):
    """Rounded to even and saturated."""
    return tl.minimum(tl.maximum(value + 12582912.0 - 12582912.0, 0.0), 255.0).to(tl.uint8)


@triton.jit
def filter(
    source, made, taps, weights, counts, images, height, width,
    TAPS: tl.constexpr, NEAR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rule = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0)  # of all images, one below the other
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = x < width
    image, y = (row // height).to(tl.int64), row % height
    red, green, blue = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for tap in range(tl.load(counts + rule)):
        number = rule * TAPS + tap
        weight = tl.load(weights + number)
        line = _reflect(y + tl.load(taps + 2 * number), height, NEAR)
        column = _reflect(x + tl.load(taps + 2 * number + 1), width, NEAR)
        at = source + (image * height + line) * width * 3 + column * 3
        red += weight * tl.load(at, mask=there, other=0).to(tl.float32)
        green += weight * tl.load(at + 1, mask=there, other=0).to(tl.float32)
        blue += weight * tl.load(at + 2, mask=there, other=0).to(tl.float32)
    to = made + ((rule * images + image) * height + y) * width * 3 + x * 3
    tl.store(to, _level(red), mask=there)
    tl.store(to + 1, _level(green), mask=there)
    tl.store(to + 2, _level(blue), mask=there)


@triton.jit
def bilateral(
    source,
    made,
    taps,
    scales,
    count,
    images,
    height,
    width,
    rules,
    RULES: tl.constexpr,
    NEAR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """All strengths of one size: what neighbours differ by is the same for all of them."""
    row = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = x < width
    image, y = (row // height).to(tl.int64), row % height
    here = source + (image * height + y) * width * 3 + x * 3
    red = tl.load(here, mask=there, other=0).to(tl.float32)
    green = tl.load(here + 1, mask=there, other=0).to(tl.float32)
    blue = tl.load(here + 2, mask=there, other=0).to(tl.float32)
    rule = tl.arange(0, RULES)
    scale = tl.load(scales + rule, mask=rule < rules, other=-1.0)[None, :]
    total = tl.zeros([BLOCK, RULES], tl.float32)
    reds, greens, blues = total, total, total
    for tap in range(count):
        down, across = tl.load(taps + 2 * tap), tl.load(taps + 2 * tap + 1)
        line, column = _reflect(y + down, height, NEAR), _reflect(x + across, width, NEAR)
        at = source + (image * height + line) * width * 3 + column * 3
        r = tl.load(at, mask=there, other=0).to(tl.float32)
        g = tl.load(at + 1, mask=there, other=0).to(tl.float32)
        b = tl.load(at + 2, mask=there, other=0).to(tl.float32)
        far = tl.abs(r - red) + tl.abs(g - green) + tl.abs(b - blue)
        weight = tl.exp2((far * far + (down * down + across * across).to(tl.float32))[:, None] * scale)
        total += weight
        reds += weight * r[:, None]
        greens += weight * g[:, None]
        blues += weight * b[:, None]
    to = made + (((rule[None, :] * images + image) * height + y) * width + x[:, None]) * 3
    stored = there[:, None] & (rule < rules)[None, :]
    tl.store(to, _level(reds / total), mask=stored)
    tl.store(to + 1, _level(greens / total), mask=stored)
    tl.store(to + 2, _level(blues / total), mask=stored)


@triton.jit
def smooth_across(source, sums, kernel, count, width, NEAR: tl.constexpr, BLOCK: tl.constexpr):
    """Whole sums of 256ths along the lines, of all channels alike."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = at < 3 * width
    x = at // 3
    channel = at - 3 * x
    total = tl.zeros([BLOCK], tl.int32)
    for tap in range(count):
        column = _reflect(x + (tap - count // 2), width, NEAR)
        value = tl.load(source + row * width * 3 + column * 3 + channel, mask=there, other=0)
        total += tl.load(kernel + tap) * value.to(tl.int32)
    tl.store(sums + row * width * 3 + at, total.to(tl.uint16), mask=there)


@triton.jit
def smooth_down(sums, made, kernel, count, height, width, NEAR: tl.constexpr, BLOCK: tl.constexpr):
    """The same down the columns, rounded once."""
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = at < 3 * width
    image, y = (row // height).to(tl.int64), row % height
    total = tl.full([BLOCK], 32768, tl.int32)
    for tap in range(count):
        line = _reflect(y + (tap - count // 2), height, NEAR)
        value = tl.load(sums + (image * height + line) * width * 3 + at, mask=there, other=0)
        total += tl.load(kernel + tap) * value.to(tl.int32)
    tl.store(made + (image * height + y) * width * 3 + at, (total >> 16).to(tl.uint8), mask=there)


# --- other places -----------------------------------------------------------------------------------


@triton.jit
def place(source, made, matrices, images, height, width, new_height, new_width, BLOCK: tl.constexpr):
    """Copies of pixels from where whole numbers say."""
    rule = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = x < new_width
    image, y = (row // new_height).to(tl.int64), row % new_height
    at = matrices + rule * 6
    column = tl.load(at) * x + (tl.load(at + 1) * y + tl.load(at + 2))
    line = tl.load(at + 3) * x + (tl.load(at + 4) * y + tl.load(at + 5))
    inside = there & (column >= 0) & (column < width) & (line >= 0) & (line < height)
    come = source + image * height * width * 3 + (line * width + column) * 3
    to = made + (((rule * images + image) * new_height + y) * new_width + x) * 3
    tl.store(to, tl.load(come, mask=inside, other=0), mask=there)
    tl.store(to + 1, tl.load(come + 1, mask=inside, other=0), mask=there)
    tl.store(to + 2, tl.load(come + 2, mask=inside, other=0), mask=there)


@triton.jit
def resample(source, made, rules, firsts, weights, images, height, width, BLOCK: tl.constexpr):
    """Follow-ups of many sizes, each in its place: `rules` has eight numbers of each."""
    at = rules + tl.program_id(2) * 8
    new_height, new_width = tl.load(at).to(tl.int32), tl.load(at + 1).to(tl.int32)
    row = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if row < images * new_height:
        begin = tl.load(at + 2) * images
        lines, columns = firsts + tl.load(at + 3), firsts + tl.load(at + 3) + new_height
        steps, sides = tl.load(at + 4).to(tl.int32), tl.load(at + 5).to(tl.int32)
        down, across = weights + tl.load(at + 6), weights + tl.load(at + 7)
        there = x < new_width
        image, y = (row // new_height).to(tl.int64), row % new_height
        first_line, first_column = tl.load(lines + y), tl.load(columns + x, mask=there, other=0)
        red, green, blue = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
        for step in range(steps):
            line = tl.minimum(first_line + step, height - 1)
            weight = tl.load(down + y * steps + step)
            come = source + (image * height + line) * width * 3
            for side in range(sides):
                part = weight * tl.load(across + x * sides + side, mask=there, other=0)
                pixel = come + tl.minimum(first_column + side, width - 1) * 3
                red += part * tl.load(pixel, mask=there, other=0).to(tl.float32)
                green += part * tl.load(pixel + 1, mask=there, other=0).to(tl.float32)
                blue += part * tl.load(pixel + 2, mask=there, other=0).to(tl.float32)
        to = made + begin + ((image * new_height + y) * new_width + x) * 3
        tl.store(to, _level(red), mask=there)
        tl.store(to + 1, _level(green), mask=there)
        tl.store(to + 2, _level(blue), mask=there)


@triton.jit
def _corner(begin, line, column, height, width, weight, there):
    """The weighted colour of one of the four pixels around a place; black outside."""
    inside = there & (line >= 0) & (line < height) & (column >= 0) & (column < width)
    at = begin + (line * width + column) * 3
    red = tl.load(at, mask=inside, other=0).to(tl.float32)
    green = tl.load(at + 1, mask=inside, other=0).to(tl.float32)
    blue = tl.load(at + 2, mask=inside, other=0).to(tl.float32)
    return weight * red, weight * green, weight * blue


@triton.jit
def project(source, made, matrices, images, height, width, new_height, new_width, BLOCK: tl.constexpr):
    rule = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = column < new_width
    image, line = (row // new_height).to(tl.int64), row % new_height
    x, y, at = column.to(tl.float32), line.to(tl.float32), matrices + rule * 9
    # what depends on the line alone is one number per program, and is summed first
    scale = tl.load(at + 6) * x + (tl.load(at + 7) * y + tl.load(at + 8))
    from_x = (tl.load(at) * x + (tl.load(at + 1) * y + tl.load(at + 2))) / scale
    from_y = (tl.load(at + 3) * x + (tl.load(at + 4) * y + tl.load(at + 5))) / scale
    left, top = tl.floor(from_x), tl.floor(from_y)
    across, down = from_x - left, from_y - top
    i, j = left.to(tl.int32), top.to(tl.int32)
    begin = source + image * height * width * 3
    r0, g0, b0 = _corner(begin, j, i, height, width, (1 - across) * (1 - down), there)
    r1, g1, b1 = _corner(begin, j, i + 1, height, width, across * (1 - down), there)
    r2, g2, b2 = _corner(begin, j + 1, i, height, width, (1 - across) * down, there)
    r3, g3, b3 = _corner(begin, j + 1, i + 1, height, width, across * down, there)
    to = made + (((rule * images + image) * new_height + line) * new_width + column) * 3
    tl.store(to, _level(r0 + r1 + r2 + r3), mask=there)
    tl.store(to + 1, _level(g0 + g1 + g2 + g3), mask=there)
    tl.store(to + 2, _level(b0 + b1 + b2 + b3), mask=there)


# --- chance -----------------------------------------------------------------------------------------


@triton.jit
def _times(a_low, a_high, b_low, b_high):
    """The product of two numbers of 128 bits, modulo 2^128."""
    return a_low * b_low, tl.umulhi(a_low, b_low) + a_low * b_high + a_high * b_low


@triton.jit
def _plus(a_low, a_high, b_low, b_high):
    low = a_low + b_low
    return low, a_high + b_high + (low < a_low).to(tl.uint64)


@triton.jit
def _leap(low, high, step_low, step_high, leaps, number, there):
    """The state a number of steps on: power · state + sum of powers · increment."""
    at = leaps + 4 * number
    power_low = tl.load(at, mask=there, other=0).to(tl.uint64, bitcast=True)
    power_high = tl.load(at + 1, mask=there, other=0).to(tl.uint64, bitcast=True)
    sum_low = tl.load(at + 2, mask=there, other=0).to(tl.uint64, bitcast=True)
    sum_high = tl.load(at + 3, mask=there, other=0).to(tl.uint64, bitcast=True)
    a_low, a_high = _times(low, high, power_low, power_high)
    b_low, b_high = _times(step_low, step_high, sum_low, sum_high)
    return _plus(a_low, a_high, b_low, b_high)


@triton.jit
def _noisy(value, table, bits, part: tl.constexpr):
    chosen = ((bits >> (16 * part)) & 65535).to(tl.int32)
    level = _byte(value, part) + tl.load(table + chosen).to(tl.int32)
    return tl.minimum(tl.maximum(level, 0), 255) << (8 * part)


@triton.jit
def add_noise(source, made, tables, states, near, far, words, NEAR: tl.constexpr, BLOCK: tl.constexpr):
    """PCG64 as numpy has it: any word of its stream by two leaps from its first state, four values of each word."""
    rule = tl.program_id(1).to(tl.int64)
    word = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = word < words
    low = tl.load(states + rule * 4).to(tl.uint64, bitcast=True)
    high = tl.load(states + rule * 4 + 1).to(tl.uint64, bitcast=True)
    step_low = tl.load(states + rule * 4 + 2).to(tl.uint64, bitcast=True)
    step_high = tl.load(states + rule * 4 + 3).to(tl.uint64, bitcast=True)
    low, high = _leap(low, high, step_low, step_high, far, word // NEAR, there)
    low, high = _leap(low, high, step_low, step_high, near, word % NEAR, there)
    turn = high >> 58
    mixed = low ^ high
    bits = (mixed >> turn) | (mixed << ((64 - turn) & 63))
    table = tables + rule * 65536
    value = tl.load(source + word, mask=there, other=0)
    new = _noisy(value, table, bits, 0) | _noisy(value, table, bits, 1)
    new |= _noisy(value, table, bits, 2) | _noisy(value, table, bits, 3)
    tl.store(made + rule * words + word, new, mask=there)
