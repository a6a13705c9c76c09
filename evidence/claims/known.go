package claims

import (
	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
)

// known is what surprised somebody before, and is reproduced here.
var known = []Entry{
	{ID: "K1", Verdict: evidence.ClaimConfirmed,
		Claim: text("go-redis repeats any command after a lost reply: one request takes its quantity again, hincrby then oversells, Lua answers “sold out” for the unit it took", "go-redis 在应答丢失后重发任何命令：一个请求再次扣减，hincrby 因此超卖，Lua 对自己取走的那件答复“售罄”"),
		Says: text("The library resends up to three times unless MaxRetries is −1, HINCRBY and EVALSHA too. A resent give-back makes units; a resent script finds the counter at zero. With the retries off hincrby does not oversell.",
			"除非 MaxRetries 为 −1，库最多重发三次，HINCRBY 与 EVALSHA 也不例外。重发的补回会造出件；重发的脚本看到计数器为零。关闭重试后 hincrby 不超卖。"),
		Rests: []proof{
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.ReplyLost), retries: "default", properties: props(model.Oversell, model.DoubleDeduct)},
			breaks{schemes: lua, faults: kinds(faults.ReplyLost), retries: "default", properties: props(model.FalseSoldOut, model.LostUnits)},
			keeps{schemes: []string{"hincrby"}, faults: kinds(faults.ReplyLost), retries: "off", properties: props(model.Oversell, model.DoubleDeduct)},
		}},
	{ID: "K2", Verdict: evidence.ClaimConfirmed,
		Claim: text("hincrby with quantities above one, or with a cancel during the sale, answers false sold-outs with no fault at all", "数量大于一、或售卖中有取消时，hincrby 没有任何故障也会误报售罄"),
		Says: text("Who asks for two of the last one hides that one until the give-back, and whoever comes meanwhile is told “sold out”.",
			"要两件而只剩一件的人，在补回之前把那一件藏了起来，其间到来的人得到“售罄”。"),
		Rests: []proof{
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.None), workloads: []string{"mixed"}, properties: props(model.FalseSoldOut)},
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.None), workloads: []string{"restock"}, properties: props(model.FalseSoldOut)},
			keeps{schemes: []string{"hincrby"}, faults: kinds(faults.None), workloads: []string{"unit"}, properties: props(model.FalseSoldOut)},
		}},
	{ID: "K3", Verdict: evidence.ClaimConfirmed,
		Claim: text("Every scheme that deducts in Redis before an order exists loses units when the client dies in between; Lua too", "所有先在 Redis 扣减、后有订单的方案，客户端死在中间都会丢件；Lua 也一样"),
		Says: text("The deduction is done, the buyer is not told, no order exists: nobody bought the unit and nobody can.",
			"扣减已完成，买家没有得到答复，订单不存在：没有人买到，也没有人能买到。"),
		Rests: []proof{breaks{schemes: []string{"hincrby", "lock", "lua-hash", "lua-lock", "lua-string"}, faults: kinds(faults.ClientCrash), properties: props(model.LostUnits)}}},
	{ID: "K4", Verdict: evidence.ClaimConfirmed,
		Claim: text("The lock oversells when a stop outlasts the lease, watchdog or not; a request delayed past the lease takes the counter below zero without any stop", "停顿超过租约时锁会超卖，有无看门狗都一样；请求延迟超过租约时，没有停顿计数器也会为负"),
		Says: text("A lease protects a section only as long as everything in it, on the wire too, is over before the lease is. Neither the client nor the server notices.",
			"只有临界区里的一切（包括网络上的）都在租约结束前完成，租约才起保护作用。客户端与服务器都不会察觉。"),
		Rests: []proof{
			breaks{schemes: []string{"lock", "lock-watchdog"}, faults: kinds(faults.ClientPause), properties: props(model.Oversell)},
			breaks{schemes: []string{"lock", "lock-watchdog"}, faults: kinds(faults.RequestDelayed), retries: "off", properties: props(model.NegativePermanent)},
		}},
	{ID: "K5", Verdict: evidence.ClaimConfirmed,
		Claim: text("A lock that writes a computed value oversells while its counter never goes negative", "写入计算值的锁会超卖，而计数器从不为负"),
		Says: text("Both holders write the same value, so the counter looks right. Who watches for negative stock sees nothing.",
			"两个持有者写入同一个值，计数器看上去正确。只监控负库存的人什么也看不到。"),
		Rests: []proof{
			breaks{schemes: []string{"lock-set"}, faults: kinds(faults.ClientPause), properties: props(model.Oversell)},
			keeps{schemes: []string{"lock-set"}, faults: clientAndWire, properties: negative},
		}},
	{ID: "K6", Verdict: evidence.ClaimQualified,
		Claim:     text("Lua oversells only when Redis loses acknowledged writes", "只有 Redis 丢失已确认的写入时 Lua 才会超卖"),
		Condition: when("the library's retries are off, or nothing is ever put back: a cancel that is sent twice makes a unit", "关闭库的重试，或从不回补：被发送两次的取消会造出一件"),
		Says: text("With retries off no fault of clients or wires makes the script oversell; Redis that comes back without its last writes does. With the library's default a restock whose reply was lost is applied twice, and the unit it invents is sold.",
			"关闭重试后，客户端与网络的任何故障都不会让脚本超卖；丢了最近写入的 Redis 会。用库的默认重试，应答丢失的回补会执行两次，凭空多出的一件会被卖掉。"),
		Rests: []proof{
			breaks{schemes: lua, faults: kinds(faults.StoreLoses), retries: "off", properties: props(model.Oversell)},
			keeps{schemes: lua, faults: clientAndWire, retries: "off", properties: props(model.Oversell)},
			breaks{schemes: lua, faults: kinds(faults.ReplyLost), workloads: []string{"restock"}, retries: "default", properties: props(model.Oversell)},
		}},
	{ID: "K7", Verdict: evidence.ClaimConfirmed,
		Claim: text("The optimistic lock without retry leaves stock unsold under contention", "不重试的乐观锁在竞争下会剩下卖不掉的库存"),
		Says: text("All who read the same version compete, one wins, the others are told busy while units are left. Nothing is wrong with the data, only with the sale.",
			"读到同一版本的人互相竞争，一人成功，其他人得到“繁忙”，而库存还有剩余。数据没有错，错的是售卖。"),
		Rests: []proof{breaks{schemes: []string{"db-version"}, faults: kinds(faults.None), properties: props(model.Unsold)}}},
}
