-- KEYS[1] stock key, KEYS[2] record of the request; ARGV[1] units wanted,
-- ARGV[2] who submits, ARGV[3] life of the record in ms, 0 for ever
-- {result, whose}: result 1 deducted, 0 too few left; whose is who submitted it
-- when that was decided. Everything that can fail comes before the write.
local record = redis.call('GET', KEYS[2])
if record then
  return {tonumber(string.sub(record, 1, 1)), string.sub(record, 3)}
end
local left = tonumber(redis.call('GET', KEYS[1]))
if not left then
  return redis.error_reply('NOSTOCK no stock counter')
end
local result = 0
if not (left < tonumber(ARGV[1])) then -- "nan" is no number to DECRBY and must not be sold out
  redis.call('DECRBY', KEYS[1], ARGV[1])
  result = 1
end
if ARGV[3] == '0' then
  redis.call('SET', KEYS[2], result .. ' ' .. ARGV[2])
else
  redis.call('SET', KEYS[2], result .. ' ' .. ARGV[2], 'PX', ARGV[3])
end
return {result, ARGV[2]}
