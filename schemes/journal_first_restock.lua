-- KEYS[1] the sale; ARGV[1] units, ARGV[2] request, ARGV[3] who submits
-- 1: put back, 2: put back before, by another submission of the request.
if not redis.call('HGET', KEYS[1], 'stock') then
  return redis.error_reply('NOSTOCK no stock counter')
end
local back = redis.call('HGET', KEYS[1], 'back:' .. ARGV[2])
if back then
  if back == ARGV[3] then
    return 1
  end
  return 2
end
redis.call('HINCRBY', KEYS[1], 'stock', ARGV[1])
redis.call('HSET', KEYS[1], 'back:' .. ARGV[2], ARGV[3])
return 1
