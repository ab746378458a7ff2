-- sec-norms-costs.lua: the bandwidth of a copy in GB/s, and bounds in ms
copy_of_norms = on("h100").peaks{quantity="copy"}.value
rows_bound = function(width, bytes) return bytes*50000*width/copy_of_norms/1e6 end
