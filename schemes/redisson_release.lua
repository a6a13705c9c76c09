-- KEYS[1] lock, KEYS[2] unlock channel, ARGV[1] message, ARGV[2] lease in ms, ARGV[3] holder
-- nil: not held by this holder. 0: still held (re-entrant). 1: free, waiters told.
if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then
  return nil
end
if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[1])
return 1
