-- KEYS[1] stock key, KEYS[2] holds, KEYS[3] mark of this hold
-- ARGV[1] units wanted, ARGV[2] request id, ARGV[3] life of the mark in ms
-- 1: held, 0: too few left, 2: this request had a hold and it has ended. A
-- request that comes again holds what it holds.
local held = redis.call('HGET', KEYS[2], ARGV[2])
if held then
  return tonumber(held) > 0 and 1 or 2
end
local left = tonumber(redis.call('GET', KEYS[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
if left < tonumber(ARGV[1]) then
  return 0
end
redis.call('DECRBY', KEYS[1], tonumber(ARGV[1]))
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[3])
return 1
