-- KEYS[1] stock key, KEYS[2] holds, KEYS[3] mark of this hold
-- ARGV[1] request id, ARGV[2] 1 to give the units back, 0 to let them go
-- 1: the hold has ended now, 0: there was none. A hold ends once.
local held = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0)
if held == 0 then
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], 0)
redis.call('DEL', KEYS[3])
if ARGV[2] == '1' then
  redis.call('INCRBY', KEYS[1], held)
end
return 1
