-- one head of D = 64 in bf16: MiB of four arrays and of a matrix; ms by the bytes
-- of S and P, and by all FLOPs
array_MiB = function(n) return MiB(4*n*64*2/2^20, 2) end
matrix_MiB = function(n) return MiB(n*n*2/2^20) end
bytes_bound = function(n) return time(8*n*n/rate("copy")/1e6) end
flops_bound = function(n) return time(4*n*n*64/rate("bf16")/1e9) end
