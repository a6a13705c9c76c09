-- KEYS[1] stock key, KEYS[2] set of the buyers who have bought; ARGV[1] units
-- wanted, ARGV[2] buyer
-- 1: deducted, 0: too few left, -1: the buyer has bought before. Everything that
-- can fail comes before the write.
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then
  return -1
end
local left = tonumber(redis.call('GET', KEYS[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
if left < tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[2], ARGV[2])
return 1
