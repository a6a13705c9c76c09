-- KEYS[1] goods hash, ARGV[1] field, ARGV[2] units wanted
-- 1: deducted, 0: too few left. Everything that can fail comes before the write.
local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
if left < tonumber(ARGV[2]) then
  return 0
end
redis.call('HINCRBY', KEYS[1], ARGV[1], -tonumber(ARGV[2]))
return 1
