-- KEYS[1] holds, ARGV[1] what the keys of their marks begin with
-- how many holds still have their time, then the requests of those that do not
local ids, young, due = redis.call('HKEYS', KEYS[1]), 0, {}
table.sort(ids)
for _, id in ipairs(ids) do
  if tonumber(redis.call('HGET', KEYS[1], id)) > 0 then
    if redis.call('EXISTS', ARGV[1] .. id) == 1 then
      young = young + 1
    else
      due[#due + 1] = id
    end
  end
end
return {young, due}
