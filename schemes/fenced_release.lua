-- KEYS[1] lock, ARGV[1] token
-- 1: free, 0: not held under this token any more.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
