-- KEYS[1] lock, ARGV[1] lease in ms, ARGV[2] holder
-- 1: renewed, 0: no longer held by this holder.
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 1
end
return 0
