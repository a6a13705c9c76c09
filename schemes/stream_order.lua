-- KEYS[1] stock key, KEYS[2] stream, ARGV[1] units wanted, ARGV[2] request id
-- 1: deducted and the order is in the stream, 0: too few left. Everything that
-- can fail comes before the first write. Nobody takes entries out of the stream,
-- so its length numbers them; an id made from the clock would do as well.
local left = tonumber(redis.call('GET', KEYS[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
if left < tonumber(ARGV[1]) then
  return 0
end
local id = (redis.call('XLEN', KEYS[2]) + 1) .. '-0'
redis.call('DECRBY', KEYS[1], tonumber(ARGV[1]))
redis.call('XADD', KEYS[2], id, 'request', ARGV[2], 'qty', ARGV[1])
return 1
