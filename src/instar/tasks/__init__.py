"""The tasks that come with Instar, each a package with one `TASK`. Nothing outside this folder names one of them."""
