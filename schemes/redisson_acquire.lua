-- KEYS[1] lock, ARGV[1] lease in ms, ARGV[2] holder
-- nil: taken (again). Otherwise the ms until the present holder's lease ends.
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return nil
end
return redis.call('PTTL', KEYS[1])
