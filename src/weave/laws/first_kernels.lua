-- first_kernels.lua: laws of its tables
tables("first_kernels", "version", "rows", "width")
law("all versions sum as many elements", "rows * width == other{row = 1}.rows")
