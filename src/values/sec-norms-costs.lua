-- sec-norms-costs.lua: bounds in ms
rows_bound = function(width, bytes) return bytes*50000*width/rate("copy")/1e6 end
