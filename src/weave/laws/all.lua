-- all.lua: laws of all tables
tables("*", "")
law("no deviation is negative", "$_sd_ms >= 0")
law("no time is negative", "$_ms >= 0")
