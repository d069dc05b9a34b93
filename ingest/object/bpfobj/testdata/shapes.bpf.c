/* Every shape of reference that a BPF object has. The committed shapes.bpf.o was made in
 * /srv/app/src, beside fixtures/src/bpf/bpf.h, by clang 14:
 *
 *	clang -g -O2 -target bpf -mcpu=v3 -c shapes.bpf.c -o shapes.bpf.o && llvm-strip -g shapes.bpf.o
 *
 * and externs.bpf.o, with what only some loaders and kernels know, with -DEXTERNS.
 */
#include "bpf.h"

#define CORE __attribute__((preserve_access_index))

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} totals SEC(".maps");

const volatile __u64 limit = 40;
__u64 seen;
static long (*bpf_loop)(__u32 nr, void *callback, void *ctx, __u64 flags) =
	(void *)BPF_FUNC_loop;

struct task_struct {
	int pid;
} CORE;

static void *(*bpf_get_current_task)(void) = (void *)BPF_FUNC_get_current_task_btf;

/* Called in another order than their names are in, one from another. */
static NOINLINE __u64 middle(__u64 x)
{
	return x * limit + 1;
}

static NOINLINE __u64 zulu(__u64 x)
{
	return middle(x) ^ (x >> 3);
}

__attribute__((noinline)) __u64 alpha(__u64 x)
{
	seen += x;
	return x + 7;
}

SEC("raw_tracepoint/sys_enter")
int orders(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 x = ctx->args[1];

	return zulu(x) + alpha(x) + middle(x) > limit;
}

static long add_up(__u32 i, __u64 *sum)
{
	*sum += middle(i);
	return 0;
}

SEC("raw_tracepoint/sys_exit")
int callback(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 sum = limit;
	__u32 key = 0;
	__u64 *total;

	bpf_loop(8, add_up, &sum, 0);
	total = bpf_map_lookup_elem(&totals, &key);
	if (total)
		*total += sum;
	return 0;
}

/* Without any reference. */
SEC("socket")
int nothing(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int relocated(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task();

	return task->pid > 1;
}

#ifdef EXTERNS
extern int CONFIG_HZ __attribute__((section(".kconfig")));
extern const int bpf_prog_active __attribute__((section(".ksyms")));
extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms"), weak));

SEC("socket")
int configured(void *ctx)
{
	return CONFIG_HZ;
}

SEC("tp_btf/sched_wakeup")
int addressed(__u64 *ctx)
{
	return (__u64)&bpf_prog_active > limit;
}

SEC("tp_btf/sched_wakeup_new")
int calling(__u64 *ctx)
{
	bpf_rcu_read_lock();
	return 0;
}
#endif

char _license[] SEC("license") = "GPL";
