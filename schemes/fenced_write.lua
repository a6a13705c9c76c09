-- KEYS[1] goods hash, ARGV[1] stock field, ARGV[2] units, ARGV[3] token
-- 1: deducted, 0: a larger token has written before. Everything that can fail
-- comes before the write.
local seen = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[3]) < seen then
  return 0
end
redis.call('HINCRBY', KEYS[1], ARGV[1], '-' .. ARGV[2])
redis.call('HSET', KEYS[1], 'fence', ARGV[3])
return 1
