package claims

import (
	"fmt"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
)

var noteB = []Entry{
	{ID: "B1", Verdict: evidence.ClaimConfirmed,
		Claim: text("A script makes check and deduct atomic with no lock", "脚本无需锁即可让检查与扣减原子化"),
		Says: text("With no fault, every execution of the script schemes keeps every law, for mixed quantities and cancels too.",
			"没有故障时，脚本方案的所有执行遵守全部性质，数量混合与取消时也是。"),
		Rests: []proof{keeps{schemes: lua, faults: kinds(faults.None), properties: safety()}}},
	{ID: "B2", Verdict: evidence.ClaimQualified,
		Claim:     text("4 cores, 8 GB: 10k/s at 1.2 ms, 50k/s at 3.8 ms, 100k/s at 8.5 ms with 0.2 % errors", "4 核 8 GB：1 万/秒 1.2 ms，5 万/秒 3.8 ms，10 万/秒 8.5 ms 且错误 0.2 %"),
		Condition: when("only the shape is meant: latency grows with the offered load, steeply near what one thread can do", "只指形状：延迟随到达率增长，接近单线程上限时陡升"),
		Says: text("The absolute figures belong to a machine that is not described. The shape is that of any queue before one server: flat, then a knee.",
			"绝对数字属于一台没有描述的机器。形状是单服务器排队的通常形状：先平，后有拐点。"),
		Rests: []proof{measured{text("at three or more offered rates latency grows, at the highest at least twofold", "至少三个到达率下延迟增长，最高时至少两倍"), func(cs costs) (found evidence.Text, there, holds bool) {
			var low, high evidence.Cost
			rates := map[float64]bool{}
			for _, c := range cs.open(lua...) {
				if len(rates) == 0 || *c.OfferedRate < *low.OfferedRate {
					low = c
				}
				if len(rates) == 0 || *c.OfferedRate > *high.OfferedRate {
					high = c
				}
				rates[*c.OfferedRate] = true
			}
			if len(rates) < 3 {
				return found, false, false
			}
			s := fmt.Sprintf("p99 %.0f µs at %.0f/s, %.0f µs at %.0f/s", low.Latency.P99, *low.OfferedRate, high.Latency.P99, *high.OfferedRate)
			return text(s, s), true, high.Latency.P99 >= 2*low.Latency.P99
		}}}},
	{ID: "B3", Verdict: evidence.ClaimRefuted,
		Claim: text("A script cannot be atomic across keys", "脚本不能跨键保持原子性"),
		Says: text("Redis runs a script as one step whatever number of keys it touches. The limit is a cluster, where the keys must share a slot, and a hash tag makes them.",
			"无论涉及多少键，Redis 都把脚本作为一步执行。限制在于集群：键必须同槽，哈希标签可以做到。"),
		Rests: []proof{
			keeps{schemes: []string{"lua-limit", "lua-journal"}, faults: kinds(faults.None), retries: "off", properties: props(model.Oversell, model.NonLinearizable, model.DoubleDeduct)},
			counted{factSlots, text("two keys share a slot with a tag", "两个键加标签后同槽"), func(v map[string]float64) bool { return v["stock and limit share a slot with a tag"] == 1 }},
		}},
	{ID: "B4", Verdict: evidence.ClaimRefuted,
		Claim: text("Lock + Lua makes “deduct stock and create order” atomic as a whole, strongly consistent", "锁 + Lua 让“扣库存与建订单”整体原子、强一致"),
		Says: text("A lock keeps others out, it does not undo. When the client dies between script and order the stock is gone, there is no order, and the next buyers are told it was sold.",
			"锁只能挡住别人，不能撤销。客户端死在脚本与订单之间时，库存没了，订单没有，之后的买家却被告知已售出。"),
		Rests: []proof{breaks{schemes: []string{"lua-lock"}, faults: kinds(faults.ClientCrash), properties: props(model.LostUnits, model.FalseSoldOut, model.NonLinearizable)}}},
	{ID: "B5", Verdict: evidence.ClaimQualified,
		Claim:     text("Compared with pure Lua, lock + Lua: 1.2 → 5.8 ms at 10k/s, 35 % less throughput", "与纯 Lua 相比，锁 + Lua：1 万/秒时 1.2 → 5.8 ms，吞吐少 35 %"),
		Condition: when("only the direction is meant; on one hot article the loss is far larger than 35 %", "只指方向；单个热点商品上的损失远大于 35 %"),
		Says: text("The lock adds its own round trips and makes requests for one article follow one another, so on a hot article throughput is one over the time a lock is held.",
			"锁增加自己的往返，并让同一商品的请求一个接一个，所以热点商品上的吞吐是持锁时间的倒数。"),
		Rests: []proof{measured{text("lua-lock is slower than lua-string from 8 connections on, beyond the intervals", "8 个连接起 lua-lock 慢于 lua-string，超出区间"), compare("lua-lock", "lua-string", 8, slower)}}},
	{ID: "B6", Verdict: evidence.ClaimConfirmed,
		Claim: text("The optimistic lock is atomic, isolated, strongly consistent", "乐观锁原子、隔离、强一致"),
		Says: text("Under every fault of clients and wires no safety law breaks: the order is in the same transaction, and what is unknown is settled by it. The price is stock left unsold, with no fault at all.",
			"在客户端与网络的所有故障下，没有安全性质被破坏：订单在同一事务中，未知结果由它判定。代价是没有任何故障也会剩下卖不掉的库存。"),
		Rests: []proof{
			keeps{schemes: []string{"db-version"}, faults: append(kinds(faults.CommitReplyLost), clientAndWire...), properties: safety()},
			breaks{schemes: []string{"db-version"}, faults: kinds(faults.None), properties: props(model.Unsold)},
		}},
	{ID: "B7", Verdict: evidence.ClaimRefuted,
		Claim: text("Database at 1,000 offered: 850 a second, at 5,000: 4,200; Redis 120,000 and 150,000 at the same points", "到达率 1,000 时数据库 850/秒，5,000 时 4,200/秒；同样两点 Redis 120,000 与 150,000"),
		Says: text("The four numbers cannot be true together: nothing completes 120,000 requests a second when 1,000 are offered. They compare an open loop with a closed one.",
			"四个数不可能同时为真：每秒只来 1,000 个请求，就不会有谁完成 120,000 个。它们把开环与闭环相比。"),
		Rests: []proof{measured{text("nothing answers more than it is offered", "完成数不超过到达数"), func(cs costs) (found evidence.Text, there, holds bool) {
			holds = true
			n := 0
			for _, c := range cs {
				if c.OfferedRate == nil || c.Repetitions < leastRepetitions {
					continue
				}
				n++
				holds = holds && c.Throughput.Median <= *c.OfferedRate*1.02
			}
			return text(fmt.Sprintf("%d open loops", n), fmt.Sprintf("%d 组开环测量", n)), n > 0, holds
		}}}},
	{ID: "B8", Verdict: evidence.ClaimQualified,
		Claim:     text("Wait 300–500 ms, lease 10–30 s, retry 100 ms are good settings", "等待 300–500 ms、租约 10–30 s、重试 100 ms 是好的设置"),
		Condition: when("holders do not die: a dead holder keeps everybody out for the whole lease", "持有者不死：死亡的持有者在整个租约内把所有人挡在外面"),
		Says: text("A lease long enough for the longest step is also how long a dead holder blocks the article, and a patience of half a second turns everybody in that time into busy answers while stock is left.",
			"足够容纳最长步骤的租约，也正是死亡持有者阻塞该商品的时间；半秒的等待让这段时间里的所有人得到“繁忙”，而库存还在。"),
		Rests: []proof{
			breaks{schemes: []string{"lock", "lock-watchdog"}, faults: kinds(faults.ClientCrash), properties: props(model.Unsold)},
			measured{text("with these settings some requests are told busy from 32 connections on", "用这些设置，32 个连接起有请求得到繁忙"), func(cs costs) (found evidence.Text, there, holds bool) {
				for _, c := range cs.with("wait_ms") {
					if wait, _ := setting(c, "wait_ms"); wait >= 300 && wait <= 500 && c.Connections >= 32 {
						there, holds = true, holds || c.Busy > 0
						s := fmt.Sprintf("%s, %g ms, %d: %.1f %%", c.Scheme, wait, c.Connections, 100*c.Busy)
						found = text(join(found.EN, s), join(found.ZH, s))
					}
				}
				return found, there, holds
			}},
		}},
	{ID: "B9", Verdict: evidence.ClaimRefuted,
		Claim: text("A hash tag {product}:stock:<id> spreads keys evenly over shards", "哈希标签 {product}:stock:<id> 把键均匀分布到各分片"),
		Says: text("Only what stands between the braces is hashed. With the literal word product every key lies in one slot, on one shard. The id has to stand in the braces.",
			"只有花括号内的内容参与哈希。写死 product 时所有键落在一个槽、一个分片上。应当把 id 放进花括号。"),
		Rests: []proof{counted{factSlots, text("{product} fills one slot, {id} more than nine in ten", "{product} 只占一个槽，{id} 超过九成各占一个"), func(v map[string]float64) bool {
			return v["slots with {product}"] == 1 && v["slots with {id}"] > 0.9*v["articles"]
		}}}},
	{ID: "B10", Verdict: evidence.ClaimQualified,
		Claim:     text("Preloading is one SET before the sale", "预热就是售卖前的一次 SET"),
		Condition: when("it runs once, and before anybody buys", "只运行一次，且在任何人购买之前"),
		Says: text("A preload that runs again during the sale puts back on sale what was sold, and the counter looks healthy.",
			"售卖期间再次运行的预热会把已售出的重新放上架，而计数器看上去正常。"),
		Rests: []proof{breaks{schemes: []string{"lua-string"}, faults: kinds(faults.StockReloaded), properties: props(model.Oversell)}}},
	{ID: "B11", Verdict: evidence.ClaimQualified,
		Claim:     text("Degradation when Redis is down: local stock cache, switch to the optimistic lock, cap concurrency", "Redis 不可用时降级：本地库存缓存、切换到乐观锁、限制并发"),
		Condition: when("Redis is really gone, and its counter is written from the database before anybody uses it again", "Redis 确实已停，且再次使用之前先从数据库写回它的计数器"),
		Says: text("Two counters sell the same stock when Redis was only slow, or comes back with the counter it had. The switch needs one owner of the truth.",
			"Redis 只是变慢、或带着原来的计数器回来时，两个计数器在卖同一批库存。切换需要唯一的事实来源。"),
		Rests: []proof{breaksOne{schemes: []string{"degrade"}, properties: props(model.Oversell, model.PhantomUnits, model.DoubleDeduct, model.DoubleSale, model.LostUnits)}}},
	{ID: "B12", Verdict: evidence.ClaimQualified,
		Claim:     text("Inconsistency is handled by periodic full sync, an operation journal and timed compensation", "不一致由定期全量同步、操作日志与定时补偿处理"),
		Condition: when("the journal is written in the same step as the deduction, and the sync leaves alone what is in flight", "日志与扣减在同一步写入，且同步不碰正在进行的请求"),
		Says: text("A journal by request id in the same script makes a repeat harmless for as long as its record is kept; one that ends before the repeat comes does not. A full sync that overlaps the sale is itself a fault: it overwrites what was sold while it was reading.",
			"同一脚本内按请求号的日志在记录保留期间使重发无害；记录先于重发到期则不然。与售卖重叠的全量同步本身就是故障：它覆盖了读取期间的售出。"),
		Rests: []proof{
			keeps{schemes: []string{"journal-first"}, faults: kinds(faults.ReplyLost), properties: props(model.DoubleDeduct)},
			breaks{schemes: []string{"lua-journal"}, faults: kinds(faults.DuplicateRequest), properties: props(model.DoubleDeduct)},
			breaksOne{schemes: []string{"lua-lock"}, faults: kinds(faults.ReconcileOverlap), properties: props(model.Oversell, model.PhantomUnits, model.LostUnits)},
		}},
	{ID: "B13", Verdict: evidence.ClaimRefuted,
		Claim: text("With scripts within 5 ms a single node holds 80,000 a second", "脚本在 5 ms 内，单节点可承受 80,000/秒"),
		Says: text("One thread that spends 5 ms on each script runs 200 a second. 80,000 a second leave 12.5 µs for each.",
			"单线程每个脚本花 5 ms，每秒只能跑 200 个。80,000/秒要求每个 12.5 微秒。"),
		Rests: []proof{measured{text("with scripts of 5 ms at most 200 a second", "脚本 5 ms 时每秒最多 200 个"), func(cs costs) (found evidence.Text, there, holds bool) {
			holds = true
			for _, c := range cs.with("script_ms") {
				if ms, _ := setting(c, "script_ms"); ms >= 5 {
					there, holds = true, holds && c.Throughput.Median <= 1000/ms*1.05
					s := fmt.Sprintf("%g ms: %.0f/s", ms, c.Throughput.Median)
					found = text(join(found.EN, s), join(found.ZH, s))
				}
			}
			return found, there, holds
		}}}},
	{ID: "B14", Verdict: evidence.ClaimRefuted,
		Claim: text("Alarms: memory > 80 %, script > 50 ms, lock wait > 200 ms", "告警：内存 > 80 %、脚本 > 50 ms、锁等待 > 200 ms"),
		Says: text("None of the three sees a lost unit, a repeat by the library, or a stop that outlasts a lease: scripts stay far below 50 ms while units go astray. What tells is stock minus counter minus orders.",
			"三者都看不到丢失的件、库的重发、超过租约的停顿：件丢失时脚本仍远低于 50 ms。能说明问题的是库存减计数器减订单。"),
		Rests: []proof{
			breaks{schemes: lua, faults: kinds(faults.ClientCrash, faults.ReplyLost), properties: props(model.LostUnits)},
			breaks{schemes: []string{"lock-set"}, faults: kinds(faults.ClientPause), properties: props(model.Oversell)},
			measured{text("scripts under load stay below the alarm of 50 ms", "负载下脚本低于 50 ms 告警"), func(cs costs) (found evidence.Text, there, holds bool) {
				holds = true
				for _, scheme := range lua {
					for _, c := range cs.plain(scheme, 0, anyShare) {
						there, holds = true, holds && c.Latency.P99 < 50_000
						s := fmt.Sprintf("%s, %d: p99 %.0f µs", scheme, c.Connections, c.Latency.P99)
						found = text(join(found.EN, s), join(found.ZH, s))
					}
				}
				return found, there, holds
			}},
		}},
	{ID: "B15", Verdict: evidence.ClaimRefuted,
		Claim: text("Lock + Lua kept stock error within 0.01 % at 150,000/s", "锁 + Lua 在 150,000/秒下库存误差不超过 0.01 %"),
		Says: text("A lock held for several round trips and a commit does not reach a small part of that rate on one article. And the error is no rate: each client that dies after its script loses its units, every time.",
			"持锁跨越数次往返和一次提交，单个商品远达不到这个速率。误差也不是比例：每个死在脚本之后的客户端都会丢件，次次如此。"),
		Rests: []proof{
			breaks{schemes: []string{"lua-lock"}, faults: kinds(faults.ClientCrash), properties: props(model.LostUnits)},
			measured{text("lua-lock stays below 150,000 a second", "lua-lock 低于 150,000/秒"), func(cs costs) (found evidence.Text, there, holds bool) {
				most := 0.0
				for _, c := range cs.plain("lua-lock", 0, anyShare) {
					there, most = true, max(most, c.Throughput.High)
				}
				s := fmt.Sprintf("%.0f/s", most)
				return text(s, s), there, most < 150_000
			}},
		}},
	{ID: "B16", Verdict: evidence.ClaimRefuted,
		Claim: text("Pure Lua is “eventually consistent” and “not isolated”; lock + Lua and the database are “strong” and “isolated”", "纯 Lua 是“最终一致”“不隔离”；锁 + Lua 与数据库是“强一致”“隔离”"),
		Says: text("Where clients die or requests are lost, the answers of the script alone still fit one order: they are linearizable. Those of lock + Lua do not, because a unit that nobody has is called sold. The words are the wrong way round.",
			"客户端死亡或请求丢失时，单脚本的答复仍符合某个顺序：可线性化。锁 + Lua 的答复则不行，因为没有人拥有的那一件被说成已售出。两个词用反了。"),
		Rests: []proof{
			keeps{schemes: lua, faults: kinds(faults.None, faults.ClientCrash, faults.RequestLost), properties: props(model.NonLinearizable)},
			breaks{schemes: []string{"lua-lock"}, faults: kinds(faults.ClientCrash, faults.RequestLost), properties: props(model.NonLinearizable)},
		}},
}
