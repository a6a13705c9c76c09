package claims

import (
	"fmt"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
)

// Often named together.
var (
	lua      = []string{"lua-hash", "lua-string"}
	negative = []model.Property{model.NegativeTransient, model.NegativePermanent}
)

func kinds(list ...faults.Kind) []faults.Kind { return list }

func props(list ...model.Property) []model.Property { return list }

var noteA = []Entry{
	{ID: "A1", Verdict: evidence.ClaimQualified,
		Claim:     text("Lua scheme: always exactly one round trip, success or failure", "Lua 方案：无论成败，始终恰好一次往返"),
		Condition: when("the server still has the script in its cache and no reply is lost", "服务器的脚本缓存仍在，且没有应答丢失"),
		Says: text("A sale and a refusal are one EVALSHA each. After SCRIPT FLUSH, a restart or a failover the first request is told NOSCRIPT and sends the whole script in a second round trip; when a reply is lost, the client library's own repeats add up to three more, and then the number is the smaller problem.",
			"售出与拒绝都各是一次 EVALSHA。在 SCRIPT FLUSH、重启或主从切换之后，第一个请求得到 NOSCRIPT，需要第二次往返发送整个脚本；应答丢失时客户端库自己的重试最多再加三次，而那时次数已是较小的问题。"),
		Rests: []proof{counted{factRoundTrips, text("one round trip sold or sold out, two after a flush", "售出或售罄一次往返，清空脚本后两次"), func(v map[string]float64) bool {
			ok := true
			for _, s := range lua {
				ok = ok && v[s+" sold"] == 1 && v[s+" sold-out"] == 1 && v[s+" flushed"] == 2
			}
			return ok
		}}}},
	{ID: "A2", Verdict: evidence.ClaimConfirmed,
		Claim: text("Lua scheme: no negative stock, not even for a moment", "Lua 方案：库存从不为负，哪怕一瞬间"),
		Says: text("Compare and decrement are one step on the server, so no order of steps and no fault that explore places shows a counter below zero. That is not the same as not overselling: Redis that loses acknowledged writes sells units twice, and the counter never tells.",
			"比较与扣减在服务器上是一步，任何步骤顺序、任何被注入的故障都没有让计数器小于零。但这不等于不超卖：Redis 丢失已确认的写入时会把同一件卖两次，而计数器看不出来。"),
		Rests: []proof{keeps{schemes: lua, properties: negative}, breaks{schemes: lua, faults: kinds(faults.StoreLoses), properties: props(model.Oversell)}}},
	{ID: "A3", Verdict: evidence.ClaimConfirmed,
		Claim: text("hincrby: one round trip on success, two on failure", "hincrby：成功一次往返，失败两次"),
		Says: text("A sale is one HINCRBY; a refusal is the decrement and the give-back. Under load the mean follows the share of refusals: 1 + share.",
			"售出是一次 HINCRBY；拒绝是扣减加补回。负载下平均值随拒绝比例变化：1 + 比例。"),
		Rests: []proof{
			counted{factRoundTrips, text("one round trip sold, two sold out", "售出一次往返，售罄两次"), func(v map[string]float64) bool { return v["hincrby sold"] == 1 && v["hincrby sold-out"] == 2 }},
			measured{text("1 + the share of futile requests, counted under load", "负载下计数为 1 + 无效请求比例"), roundTrips("hincrby", func(futile float64) float64 { return 1 + futile })},
		}},
	{ID: "A4", Verdict: evidence.ClaimQualified,
		Claim:     text("hincrby: a short negative window; a crash, a long stop or a network cut between decrement and give-back leaves permanent negative stock", "hincrby：短暂的负库存窗口；扣减与补回之间进程崩溃、长停顿或网络中断会留下永久负库存"),
		Condition: when("the give-back never comes; a stop that ends only prolongs the window", "补回始终没有到来；会结束的停顿只是延长窗口"),
		Says: text("The window is there with no fault at all. A crash after the decrement, a request or a reply that is lost, leave the counter below zero for good, and the units that are then restocked are swallowed by it. A process that merely stops gives back when it goes on.",
			"没有任何故障也有这个窗口。扣减之后崩溃、请求或应答丢失会让计数器永久为负，之后回补的件数会被它吞掉。只是停顿的进程恢复后会补回。"),
		Rests: []proof{
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.None), properties: props(model.NegativeTransient)},
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.ClientCrash, faults.RequestLost, faults.ReplyLost), properties: props(model.NegativePermanent)},
			keeps{schemes: []string{"hincrby"}, faults: kinds(faults.None, faults.ClientPause), properties: props(model.NegativePermanent)},
		}},
	{ID: "A5", Verdict: evidence.ClaimConfirmed,
		Claim: text("hincrby: many failing requests amplify Redis load", "hincrby：大量失败请求放大 Redis 负载"),
		Says: text("Commands a request are 1 + the share of requests that find nothing: nearly two when almost all are futile, against one command of the script, which the server however also spends on running it.",
			"每请求命令数是 1 加上无效请求的比例：几乎全部无效时接近两条；脚本只有一条，但服务器执行脚本本身也要花费。"),
		Rests: []proof{measured{text("commands a request grow by the share of futile requests", "每请求命令数随无效比例增长"), func(cs costs) (evidence.Text, bool, bool) {
			var low, high float64
			for _, c := range cs.plain("hincrby", 0, noneFutile) {
				low = c.Commands
			}
			for _, c := range cs.plain("hincrby", 0, mostlyFutile) {
				high = c.Commands
			}
			s := fmt.Sprintf("%.2f → %.2f", low, high)
			return text(s, s), low > 0 && high > 0, high > 1.8*low
		}}}},
	{ID: "A6", Verdict: evidence.ClaimQualified,
		Claim:     text("Lock: serial, therefore no oversell and no negative stock", "锁：串行，所以不会超卖，也不会为负"),
		Condition: when("no holder's step comes later than its lease, Redis loses nothing, and the client library repeats nothing", "持有者的任何一步都不晚于租约，Redis 什么也没丢，客户端库不重发"),
		Says: text("With no fault, and when holders die, the lock does what it says. A stop that outlasts the lease puts two clients into the section at once: both read the last unit and both decrement. A watchdog does not help, it is stopped as well.",
			"没有故障、或持有者死亡时，锁做到了它所说的。停顿超过租约就会让两个客户端同时在临界区内：都读到最后一件，都扣减。看门狗没有帮助，它也停住了。"),
		Rests: []proof{
			keeps{schemes: []string{"lock", "lock-watchdog"}, faults: kinds(faults.None, faults.ClientCrash), properties: append(props(model.Oversell), negative...)},
			breaks{schemes: []string{"lock", "lock-watchdog"}, faults: kinds(faults.ClientPause, faults.StoreLoses), properties: props(model.Oversell, model.NegativePermanent)},
		}},
	{ID: "A7", Verdict: evidence.ClaimConfirmed,
		Claim: text("Lock: throughput the worst of the three", "锁：三者中吞吐最差"),
		Says: text("Holders follow one another, each with four round trips, so throughput is bounded by the round trip and not by the server; the others wait or give up.",
			"持有者一个接一个，每个四次往返，吞吐受往返时间而不是服务器限制；其他人等待或放弃。"),
		Rests: []proof{
			measured{text("lock is slower than hincrby from 8 connections on, beyond the intervals", "8 个连接起 lock 慢于 hincrby，超出区间"), compare("lock", "hincrby", 8, slower)},
			measured{text("lock is slower than lua-hash from 8 connections on, beyond the intervals", "8 个连接起 lock 慢于 lua-hash，超出区间"), compare("lock", "lua-hash", 8, slower)},
		}},
	{ID: "A8", Verdict: evidence.ClaimConfirmed,
		Claim: text("Lock: risks are expiry, wrong release, and a lock lost at primary–replica switch", "锁：风险是过期、误释放、主从切换时丢锁"),
		Says: text("Each of the three oversells. Expiry needs only a stop longer than the lease. A release that does not ask who holds the lock lets a third client in. A replica that was promoted without the lock hands it out again.",
			"三者都会超卖。过期只需要比租约更长的停顿；释放时不检查持有者会放第三个客户端进来；没有这把锁的副本被提升后会再次发出锁。"),
		Rests: []proof{
			breaks{schemes: []string{"lock"}, faults: kinds(faults.ClientPause, faults.StoreLoses), properties: props(model.Oversell)},
			breaks{schemes: []string{"setnx-lock"}, faults: kinds(faults.ClientPause), properties: props(model.Oversell)},
		}},
	{ID: "A9", Verdict: evidence.ClaimQualified,
		Claim:     text("Lua: in a cluster all keys of the script must share a slot; hincrby has no cluster restriction", "Lua：集群中脚本的所有键必须同槽；hincrby 没有集群限制"),
		Condition: when("the script has more than one key; the deduction alone has one, like hincrby", "脚本有多个键；只做扣减的脚本和 hincrby 一样只有一个键"),
		Says: text("Stock and a per-buyer limit lie in different slots unless a hash tag puts them together. A script with one key is under no restriction that a plain command is not under. The lock's channel carries a tag for this reason.",
			"库存与每人限购落在不同的槽，除非用哈希标签放在一起。只有一个键的脚本不比普通命令受更多限制。锁的频道名正是为此带了标签。"),
		Rests: []proof{counted{factSlots, text("stock and limit share a slot only with a tag, a lock and its channel do", "库存与限购只有加标签才同槽，锁与其频道同槽"), func(v map[string]float64) bool {
			return v["stock and limit share a slot without a tag"] == 0 && v["stock and limit share a slot with a tag"] == 1 && v["lock and its channel share a slot"] == 1
		}}}},
	{ID: "A10", Verdict: evidence.ClaimRefuted,
		Claim: text("Lua: reconciliation only guards against loss of Redis data, not against business defects", "Lua：对账只防 Redis 数据丢失，不是为了弥补业务缺陷"),
		Says: text("Units are lost while Redis loses nothing at all: the buyer's process dies after the script, or the reply is lost, and the unit is gone without a buyer. Somebody has to find those units, and that is reconciliation.",
			"Redis 什么也没丢时也会丢件：买家进程在脚本之后死亡，或应答丢失，这一件就没有主人了。必须有人找回这些件，这就是对账。"),
		Rests: []proof{breaks{schemes: lua, faults: kinds(faults.ClientCrash, faults.ReplyLost), properties: props(model.LostUnits)}}},
	{ID: "A11", Verdict: evidence.ClaimQualified,
		Claim:     text("Lua: a long script blocks the server for everybody; script cache and versions are operational risks", "Lua：长脚本阻塞所有人；脚本缓存与版本是运维风险"),
		Condition: when("the script is long; a forgotten script costs a round trip and breaks nothing, where the client falls back to EVAL", "脚本很长；脚本被遗忘只多一次往返，客户端会退回 EVAL，不破坏任何性质"),
		Says: text("Redis runs one command at a time, so everybody's latency grows by the length of the script. A script cache that is flushed in the middle of the sale was placed at every step: no law broke, and the next request took two round trips.",
			"Redis 一次执行一条命令，所有人的延迟都随脚本长度增加。在售卖中的每一步清空脚本缓存都试过：没有性质被破坏，下一个请求用了两次往返。"),
		Rests: []proof{
			keeps{schemes: lua, faults: kinds(faults.ScriptFlush), properties: safety()},
			measured{text("the 99th percentile is at least the length of the script", "第 99 百分位延迟不短于脚本长度"), func(cs costs) (found evidence.Text, there, holds bool) {
				holds = true
				for _, c := range cs.with("script_ms") {
					if ms, _ := setting(c, "script_ms"); ms > 0 && c.Connections > 1 {
						there, holds = true, holds && c.Latency.P99 >= 1000*ms
						s := fmt.Sprintf("%g ms: p99 %.0f µs", ms, c.Latency.P99)
						found = text(join(found.EN, s), join(found.ZH, s))
					}
				}
				return found, there, holds
			}},
		}},
	{ID: "A12", Verdict: evidence.ClaimConfirmed,
		Claim: text("hincrby suits guarded traffic, not tiny stock with masses of futile requests; Lua is friendlier there", "hincrby 适合有防护的流量，不适合极小库存加海量无效请求；那里 Lua 更友好"),
		Says: text("With nearly all requests futile hincrby sends almost two commands where the script sends one, its counter is below zero most of the time, and quantities above one are refused wrongly with no fault at all.",
			"几乎全部请求无效时，hincrby 发近两条命令而脚本一条；它的计数器大部分时间为负，而且数量大于一时没有任何故障也会误报售罄。"),
		Rests: []proof{
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.None), properties: props(model.NegativeTransient, model.FalseSoldOut)},
			measured{text("hincrby needs more round trips than lua-hash where requests are futile", "请求无效时 hincrby 的往返多于 lua-hash"), func(cs costs) (evidence.Text, bool, bool) {
				var h, l float64
				for _, c := range cs.plain("hincrby", 0, mostlyFutile) {
					h = c.RoundTrips
				}
				for _, c := range cs.plain("lua-hash", 0, mostlyFutile) {
					l = c.RoundTrips
				}
				s := fmt.Sprintf("%.2f / %.2f", h, l)
				return text(s, s), h > 0 && l > 0, h > 1.5*l
			}},
		}},
	{ID: "A13", Verdict: evidence.ClaimRefuted,
		Claim: text("Giving back on payment timeout or cancel is separate from the give-back of a failed decrement", "支付超时或取消的回补与失败扣减的补回互不相干"),
		Says: text("Both add to the same counter. A cancel that arrives while the counter is below zero is swallowed by it: the next buyer is told “sold out” though a unit was put back, with no fault at all. A script has no such window.",
			"两者加到同一个计数器上。取消到来时计数器若为负，就被它吞掉：明明放回了一件，下一个买家却得到“售罄”，没有任何故障。脚本没有这个窗口。"),
		Rests: []proof{
			breaks{schemes: []string{"hincrby"}, faults: kinds(faults.None), workloads: []string{"restock"}, properties: props(model.FalseSoldOut, model.NonLinearizable)},
			keeps{schemes: lua, faults: kinds(faults.None), workloads: []string{"restock"}, properties: props(model.FalseSoldOut, model.NonLinearizable)},
		}},
	{ID: "A14", Verdict: evidence.ClaimQualified,
		Claim:     text("Periodic reconciliation between Redis and the database repairs what is left over", "Redis 与数据库的定期对账修复残留问题"),
		Condition: when("no request is in flight between what it reads and what it writes", "在它读取与写入之间没有请求正在进行"),
		Says: text("A job that reads orders and counter and then writes the difference undoes what was sold in between. Run at rest it repairs lost units; run during the sale it makes units that do not exist, or takes some away.",
			"先读订单与计数器、再写差额的任务会撤销其间的售出。静止时运行能修复丢失的件；售卖时运行会造出不存在的件，或拿走一些。"),
		Rests: []proof{breaksOne{schemes: []string{"lua-lock"}, faults: kinds(faults.ReconcileOverlap), properties: props(model.Oversell, model.PhantomUnits, model.LostUnits)},
			breaks{schemes: []string{"reconcile-naive"}, faults: kinds(faults.None), properties: props(model.Oversell)}}},
	{ID: "A15", Verdict: evidence.ClaimConfirmed,
		Claim: text("Lua per-buyer limit in the same script keeps atomicity when the keys allow it", "键允许时，同一脚本内的每人限购保持原子性"),
		Says: text("With the limit in the script there is no order of steps in which a buyer passes the check and the counter is gone. In a cluster both keys need one hash tag.",
			"限购在脚本内时，不存在买家通过检查而库存已无的步骤顺序。集群中两个键需要同一个哈希标签。"),
		Rests: []proof{
			keeps{schemes: []string{"lua-limit"}, faults: kinds(faults.None), retries: "off", properties: append(props(model.Oversell, model.NonLinearizable), negative...)},
			counted{factSlots, text("the two keys share a slot with a tag", "两个键加标签后同槽"), func(v map[string]float64) bool { return v["stock and limit share a slot with a tag"] == 1 }},
		}},
}
