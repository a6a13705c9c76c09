package page

import (
	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// translated is an English text with its Chinese one; English where a table has
// none, for what other people add. A test wants all that is ours.
func translated(table map[string]string, key, english string) evidence.Text {
	zh, ok := table[key]
	if !ok {
		zh = english
	}
	return evidence.Text{EN: english, ZH: zh}
}

func propertyName(p model.PropertyInfo) evidence.Text {
	return translated(propertyNames, string(p.ID), string(p.ID))
}

func propertyText(p model.PropertyInfo) evidence.Text {
	return translated(propertyNames, p.BrokenWhen, p.BrokenWhen)
}

func schemeText(name string) evidence.Text {
	e, err := schemes.ByName(name)
	if err != nil {
		return evidence.Text{} // somebody else's
	}
	return translated(schemeNames, name, e.Summary)
}

// Untranslated lists the names and summaries that have no Chinese yet.
func Untranslated() []string {
	var list []string
	want := func(table map[string]string, key string) {
		if _, ok := table[key]; !ok {
			list = append(list, key)
		}
	}
	for _, p := range model.Properties() {
		want(propertyNames, string(p.ID))
		want(propertyNames, p.BrokenWhen)
		want(units, p.Unit)
	}
	for _, k := range faults.Kinds() {
		want(faultNames, string(k.ID))
		want(faultNames, k.Summary)
	}
	for _, w := range faults.Workloads() {
		want(workloadNames, w.Name)
		want(workloadNames, w.Summary)
	}
	for _, e := range schemes.All() {
		want(schemeNames, e.Scheme.Name())
	}
	return list
}

var propertyNames = map[string]string{
	"oversell": "超卖", "units answered sold exceed initial + restocked": "答复“售出”的件数超过初始库存加回补",
	"negative-transient": "瞬时负库存", "the stored counter is below zero at some moment": "存储的计数器在某一刻小于零",
	"negative-permanent": "永久负库存", "the stored counter is below zero at rest": "静止后存储的计数器小于零",
	"lost-units": "库存丢失", "units nobody bought and nobody can buy": "没有人买到、也没有人能买到的件数",
	"phantom-units": "虚增库存", "the counter promises units that do not exist": "计数器承诺了不存在的件数",
	"double-deduct": "重复扣减", "one request took its quantity more than once": "一个请求多次扣减了它的数量",
	"double-sale": "重复售出", "one request, or one limited buyer, got its units twice": "一个请求或一个限购买家得到了两份",
	"order-mismatch": "订单不符", "durable orders differ from units answered sold": "持久化订单与答复“售出”的件数不同",
	"false-sold-out": "误报售罄", "answered sold-out while enough units were there all the time": "一直有足够库存却答复售罄",
	"non-linearizable": "不可线性化", "the answers fit no sequential order": "答复不符合任何顺序执行",
	"unsold": "未售出", "units are left although busy answers asked for them": "有人因“繁忙”没买到，库存却有剩余",
	"stuck": "卡死", "after recovery a probe gets neither sold nor sold-out": "恢复之后，探测请求既得不到“售出”也得不到“售罄”",
}

var units = map[string]string{
	"units sold too many": "超卖件数", "lowest counter": "计数器最低值", "counter at rest": "静止时计数器",
	"units lost": "丢失件数", "units too many": "虚增件数", "units taken too many": "多扣件数", "sales too many": "多售次数",
	"orders minus sold": "订单减售出", "operations": "操作数", "histories": "历史数", "units left": "剩余件数", "probes": "探测次数",
}

var faultNames = map[string]string{
	"none": "无故障", "nothing goes wrong; only the order of steps varies": "没有故障，只有步骤的先后不同",
	"client-crash": "客户端崩溃", "the client process is killed after a step": "客户端进程在某一步之后被杀死",
	"client-pause": "客户端长停顿",
	"all goroutines of the client stop after a step, for longer than any lease": "客户端的所有协程在某一步之后停住，比任何租约都长",
	"client-pause-short": "客户端短停顿",
	"all goroutines of the client stop after a step, for less than its lease (schemes that have one)": "客户端的所有协程在某一步之后停住，比租约短（有租约的方案）",
	"request-lost": "请求丢失", "the connection breaks before the server sees the step": "服务器看到这一步之前连接断开",
	"reply-lost": "应答丢失", "the server executes the step, the connection breaks before the client sees the reply": "服务器执行了这一步，客户端看到应答之前连接断开",
	"request-delayed": "请求延迟", "the client sees an error, the server executes the step at any later moment": "客户端看到错误，服务器在之后任意时刻执行这一步",
	"duplicate-request": "重复请求", "the same request id is submitted a second time": "同一个请求号被提交了两次",
	"commit-reply-lost": "提交应答丢失", "reply-lost on a COMMIT": "COMMIT 的应答丢失",
	"store-loses": "存储丢写", "Redis comes back without its last acknowledged writes (failover, restart)": "Redis 恢复后丢失最近已确认的写入（主从切换、重启）",
	"script-flush": "脚本缓存清空", "Redis forgets its loaded scripts": "Redis 忘记已加载的脚本",
	"Redis dies and comes back with what its persistence kept: nothing, a snapshot, the append-only file with or without its tail": "Redis 死亡后带着持久化留下的内容回来：空、快照、带尾部或缺尾部的追加文件",
	"a replica that lacks the last writes becomes the primary, with and without WAIT":                                              "缺少最近写入的副本成为主节点，有或没有 WAIT",
	"Redis stands still: clients give up, and the commands it has buffered run later":                                              "Redis 停住：客户端放弃，它缓冲的命令稍后执行",
	"Redis drops a key to free memory":                                                      "Redis 为腾出内存丢弃一个键",
	"the key of the stock reaches the end of a time to live":                                "库存键的存活时间到期",
	"PostgreSQL dies and comes back, with or without its last commits (synchronous_commit)": "PostgreSQL 死亡后回来，保留或丢失最近的提交（synchronous_commit）",
	"the preload runs again during the sale":                                                "售卖期间再次预热",
	"a reconciliation job reads and then writes while the sale goes on":                     "售卖进行时对账任务先读后写",
	"redis-restart": "Redis 重启", "redis-failover": "Redis 主从切换", "redis-freeze": "Redis 冻结", "key-evicted": "键被淘汰", "key-expired": "键过期",
	"postgres-restart": "PostgreSQL 重启", "stock-reloaded": "库存被重新预热", "reconcile-overlap": "对账与售卖重叠",
}

var workloadNames = map[string]string{
	"unit": "单件", "every buyer wants one unit": "每个买家要一件",
	"mixed": "混合", "buyers want one or two units": "买家要一件或两件",
	"restock": "回补", "a cancel puts a unit back during the sale": "售卖期间有取消把一件放回",
}

// schemeNames are the summaries of our schemes, by name.
var schemeNames = map[string]string{
	"db-version":    "SQL 乐观锁：带版本号的条件更新，不重试",
	"hincrby":       "先减、看结果、为负再补回",
	"lock":          "Redisson 式锁，内部先读、检查、再减",
	"lock-set":      "锁内写入计算出的值（HSET）",
	"lock-watchdog": "带看门狗续租的 Redisson 式锁",
	"lua-hash":      "一个 Lua 脚本，库存在哈希字段里",
	"lua-lock":      "锁 + Lua 脚本 + 订单",
	"lua-string":    "一个 Lua 脚本，库存在字符串键里",
	"naive":         "先读、检查、再减，没有任何保护（对照）",
	"naive-set":     "先读、检查、写入计算出的值，没有任何保护（对照）",
	"watch-multi":   "WATCH / MULTI / EXEC，有限次重试", "setnx-lock": "SET NX PX 锁，释放时不检查持有者",
	"token-list": "预先放入令牌的列表，LPOP 取走", "segmented": "库存分成多段",
	"lua-journal": "同一脚本内记录请求号的幂等日志", "lua-limit": "同一脚本内的每人限购",
	"lock-fenced": "带防护令牌的锁", "journal-first": "先写日志的 Redis 方案", "sql-first": "一条 SQL 完成扣减与订单",
	"lua-wait": "扣减后 WAIT 等待副本", "sql-conditional": "条件 UPDATE 与订单同一事务", "sql-for-update": "SELECT … FOR UPDATE 悲观锁",
	"db-version-retry": "SQL 乐观锁，有限次重试", "reserve-confirm": "预留、确认、取消，超时回补",
	"reserve-confirm-once": "预留、确认、取消，回补只做一次", "stream-order-blind": "同 stream-order，消费者直接插入订单",
	"stream-order": "脚本内扣减并写入流，消费者落订单", "outbox": "PostgreSQL 事务发件箱", "degrade": "Redis 失效时降级到数据库",
	"reconcile-naive": "直接覆盖的对账任务", "reconcile-diff": "按差额修正的对账任务",
}

// assumptions are those of evidence.Bounds.
var assumptions = map[string]string{
	"explore: every interleaving of steps and every placement of the fault within the bounds, one SKU, no more":                                                                          "探索：界限之内步骤的所有交错、故障的所有位置，一种商品，仅此而已",
	"explore: a command takes no time; time passes only when no live client can run, so without a pause a command is much faster than any lease":                                         "探索：命令不花时间；只有当没有存活客户端可以执行时时间才前进，所以没有停顿时命令远快于任何租约",
	"explore: redis-failover, redis-freeze and redis-restart(aof-everysec) with two of the clients, unless their number was asked for":                                                   "探索：redis-failover、redis-freeze 与 redis-restart(aof-everysec) 只用其中两个客户端，除非指定了客户端数",
	"explore: lease 300 ms, patience 100 ms, retry 100 ms; go-redis retries without its random backoff":                                                                                  "探索：租约 300 毫秒、等待 100 毫秒、重试 100 毫秒；go-redis 重试不含随机退避",
	"explore: Redis executes commands one at a time; PostgreSQL is the documented SQL subset at READ COMMITTED":                                                                          "探索：Redis 逐条执行命令；PostgreSQL 是文档所述的 READ COMMITTED 子集",
	"any number of clients: buyers come in any number, clients that restock as often as the workload has them":                                                                           "任意多个客户端：买家数量任意，回补的客户端与负载中一样多",
	"any number of clients: two histories of a client's code that no test of two events tells apart are one state of it":                                                                 "任意多个客户端：两个事件的任何测试都不能区分的两段客户端历史视为同一状态",
	"live: clients arrive one after another; with fault none also one preemption after every step of every client but its last, and all clients behind a barrier after their first step": "真实：客户端依次到达；无故障时还包括在每个客户端每一步（最后一步除外）之后的一次抢占，以及所有客户端在第一步之后的屏障",
	"live: one fault a run, at every step of every client of a fault-free run in turn; steps that only a contended run makes are not places":                                             "真实：每次运行一个故障，依次位于无故障运行中每个客户端的每一步；只有竞争时才出现的步骤不作为位置",
	"live: leases scaled to 300 ms (1 s with SQL inside) and patience to 100 ms where a fault has to meet them; published leases elsewhere":                                              "真实：故障必须与租约相遇时，租约缩短为 300 毫秒（内含 SQL 时 1 秒），等待 100 毫秒；其他情况用公布的租约",
	"live: holds rests on the runs made, not on a proof":                                                                                                                                 "真实：“成立”依据所做的运行，不是证明",
}
