-- KEYS[1] the sale; ARGV[1] units wanted, ARGV[2] request, ARGV[3] who submits
-- 1: sold, 0: too few left, 2: sold before, to another submission of the request.
-- What was answered once is answered again; what can fail comes before the write.
local left = tonumber(redis.call('HGET', KEYS[1], 'stock'))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
local sale = ARGV[1] .. ' ' .. ARGV[3]
local sold = redis.call('HGET', KEYS[1], 'sold:' .. ARGV[2])
if sold then
  if sold == sale then
    return 1
  end
  return 2
end
-- A copy of a command that was answered sold-out must never sell.
local refused = 'refused:' .. ARGV[2] .. ' ' .. ARGV[3]
if redis.call('HEXISTS', KEYS[1], refused) == 1 then
  return 0
end
if left < tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], refused, '')
  return 0
end
redis.call('HINCRBY', KEYS[1], 'stock', '-' .. ARGV[1])
redis.call('HSET', KEYS[1], 'sold:' .. ARGV[2], sale)
return 1
