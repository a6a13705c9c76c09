-- KEYS[1] stock key, ARGV[1] units wanted
-- 1: deducted, 0: too few left. Everything that can fail comes before the write.
local left = tonumber(redis.call('GET', KEYS[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
if left < tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], tonumber(ARGV[1]))
return 1
