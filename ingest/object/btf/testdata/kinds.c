void;
int (*)[6]; /* 8 bytes */
int; /* 4 bytes */
int [6]; /* 24 bytes */
__ARRAY_SIZE_TYPE__; /* 4 bytes */
int (*)[2]; /* 8 bytes */
int [2]; /* 8 bytes */
__u32 *; /* 8 bytes */
typedef unsigned int __u32;
unsigned int; /* 4 bytes */
struct point *; /* 8 bytes */
struct point {
	__s32 x;                                /*     0      4 */
	__s32 y;                                /*     4      4 */

	/* size: 8, cachelines: 1, members: 2 */
	/* last cacheline: 8 bytes */
};
typedef int __s32;
struct {
	int (*type)[6];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct point *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[6];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct point *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} per_cpu;
int (*)[5]; /* 8 bytes */
int [5]; /* 20 bytes */
int (*)[4]; /* 8 bytes */
int [4]; /* 16 bytes */
struct list_key *; /* 8 bytes */
struct list_key {
	__u32 pid;                              /*     0      4 */
	enum color color;                       /*     4      4 */
	char comm[8];                           /*     8      8 */

	/* size: 16, cachelines: 1, members: 3 */
	/* last cacheline: 16 bytes */
};
enum color {
	RED = 0,
	GREEN = 7,
	BLUE = -3,
};
char; /* 1 byte */
char [8]; /* 8 bytes */
__u64 *; /* 8 bytes */
typedef unsigned long long __u64;
unsigned long long; /* 8 bytes */
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	__u64 *value;                           /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	__u64 *value;                           /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} per_cpu_hash;
int (*)[20]; /* 8 bytes */
int [20]; /* 80 bytes */
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[20];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[20];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare_cpu;
struct ints *; /* 8 bytes */
struct ints {
	schar s8;                               /*     0      1 */
	__u8 u8;                                /*     1      1 */
	__s16 s16;                              /*     2      2 */
	__u16 u16;                              /*     4      2 */
	/* XXX 2 bytes hole */
	__s32 s32;                              /*     8      4 */
	__u32 u32;                              /*    12      4 */
	__s64 s64;                              /*    16      8 */
	__u64 u64;                              /*    24      8 */
	flag_t flag;                            /*    32      1 */
	char letter;                            /*    33      1 */

	/* size: 40, cachelines: 1, members: 10 */
	/* holes: 1, sum holes: 2 */
	/* padding: 6 bytes */
	/* last cacheline: 40 bytes */
};
typedef signed char schar;
signed char; /* 1 byte */
typedef unsigned char __u8;
unsigned char; /* 1 byte */
typedef short __s16;
short; /* 2 bytes */
typedef unsigned short __u16;
unsigned short; /* 2 bytes */
typedef long long __s64;
long long; /* 8 bytes */
typedef _Bool flag_t;
_Bool; /* 1 byte */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct ints *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct ints *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} ints;
struct wide *; /* 8 bytes */
struct wide {
	__int128 s;                             /*     0     16 */
	unsigned __int128 u;                    /*    16     16 */

	/* size: 32, cachelines: 1, members: 2 */
	/* last cacheline: 32 bytes */
};
__int128; /* 16 bytes */
unsigned __int128; /* 16 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct wide *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct wide *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} wide;
struct floats *; /* 8 bytes */
struct floats {
	float single;                           /*     0      4 */
	/* XXX 4 bytes hole */
	double twice;                           /*     8      8 */
	float list[3];                          /*    16     12 */

	/* size: 32, cachelines: 1, members: 3 */
	/* holes: 1, sum holes: 4 */
	/* padding: 4 bytes */
	/* last cacheline: 32 bytes */
};
float; /* 4 bytes */
double; /* 8 bytes */
float [3]; /* 12 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct floats *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct floats *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} floats;
struct bits *; /* 8 bytes */
struct bits {
	unsigned int a: 1;                      /*     0: 0   4 */
	unsigned int b: 7;                      /*     0: 1   4 */
	int c: 5;                               /*     1: 0   4 */
	unsigned int d: 19;                     /*     1: 5   4 */
	/* XXX 4 bytes hole */
	unsigned long long e: 41;               /*     8: 0   8 */
	/* XXX 2 bytes 7 bits hole */
	long long f: 33;                        /*    16: 0   8 */
	_Bool g: 1;                             /*    20: 1   1 */
	enum color h: 4;                        /*    20: 2   4 */
	/* XXX 3 bytes 2 bits hole */
	__u32 after;                            /*    24      4 */

	/* size: 32, cachelines: 1, members: 9 */
	/* holes: 3, sum holes: 9 */
	/* bit holes: 2, sum bit holes: 9 bits */
	/* padding: 4 bytes */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct bits *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct bits *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bits;
struct nested *; /* 8 bytes */
struct nested {
	struct point corner[2];                 /*     0     16 */
	__u16 grid[2][3];                       /*    16     12 */
	/* XXX 4 bytes hole */
	union {
		__u64 id;                       /*    32      8 */
		struct point at;                /*    32      8 */

		/* size: 8, members: 2 */
	};                                      /*    32      8 */
	union number number;                    /*    40      4 */
	char name[16];                          /*    44     16 */
	char letters[4];                        /*    60      4 */
	/* --- cacheline 1 boundary (64 bytes) --- */
	enum color color;                       /*    64      4 */
	/* XXX 4 bytes hole */
	enum big big;                           /*    72      8 */
	enum low low;                           /*    80      8 */

	/* size: 88, cachelines: 2, members: 9 */
	/* holes: 2, sum holes: 8 */
	/* last cacheline: 24 bytes */
};
struct point [2]; /* 16 bytes */
__u16 [3]; /* 6 bytes */
__u16 [2][3]; /* 12 bytes */
union {
	__u64 id;                               /*     0      8 */
	struct point at;                        /*     0      8 */

	/* size: 8, cachelines: 1, members: 2 */
	/* last cacheline: 8 bytes */
};
union number {
	__u32 whole;                            /*     0      4 */
	__u8 bytes[4];                          /*     0      4 */
	struct {
		__u16 low;                      /*     0      2 */
		__u16 high;                     /*     2      2 */

		/* size: 4, members: 2 */
	};                                      /*     0      4 */

	/* size: 4, cachelines: 1, members: 3 */
	/* last cacheline: 4 bytes */
};
__u8 [4]; /* 4 bytes */
struct {
	__u16 low;                              /*     0      2 */
	__u16 high;                             /*     2      2 */

	/* size: 4, cachelines: 1, members: 2 */
	/* last cacheline: 4 bytes */
};
char [16]; /* 16 bytes */
char [4]; /* 4 bytes */
enum big {
	SMALL = 1,
	HUGE_ONE = 81985529216486895ULL,
};
enum low {
	LOWEST = -9223372032559808512LL,
	ZERO = 0,
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct nested *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct nested *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} nested;
int (*)[1]; /* 8 bytes */
int [1]; /* 4 bytes */
struct packed *; /* 8 bytes */
struct packed {
	__u8 first;                             /*     0      1 */
	__u32 second;                           /*     1      4 */
	__u16 third;                            /*     5      2 */

	/* size: 7, cachelines: 1, members: 3 */
	/* last cacheline: 7 bytes */
} __attribute__((packed));
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct packed *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct packed *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} packed;
struct refs *; /* 8 bytes */
struct refs {
	struct unknown *opaque;                 /*     0      8 */
	int (*call)(const char *restrict, struct point); /*     8      8 */
	reg_t reg;                              /*    16      8 */
	int __attribute__((btf_type_tag("user"))) *user; /*    24      8 */
	const struct point *const *chain;       /*    32      8 */
	void *nothing;                          /*    40      8 */

	/* size: 48, cachelines: 1, members: 6 */
	/* last cacheline: 48 bytes */
};
struct unknown *; /* 8 bytes */
struct unknown;
int (*)(const char *restrict, struct point); /* 8 bytes */
int (const char *restrict, struct point);
const char *restrict; /* 8 bytes */
const char *; /* 8 bytes */
const char; /* 1 byte */
typedef const volatile unsigned int *reg_t;
const volatile unsigned int *; /* 8 bytes */
const volatile unsigned int; /* 4 bytes */
volatile unsigned int; /* 4 bytes */
int __attribute__((btf_type_tag("user"))); /* 4 bytes */
int __attribute__((btf_type_tag("user"))) *; /* 8 bytes */
const struct point *const *; /* 8 bytes */
const struct point *const; /* 8 bytes */
const struct point *; /* 8 bytes */
const struct point; /* 8 bytes */
void *; /* 8 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct refs *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct refs *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} refs;
struct node *; /* 8 bytes */
struct node {
	struct node *next;                      /*     0      8 */
	__u32 n;                                /*     8      4 */
	__u8 tail[0];                           /*    12      0 */

	/* size: 16, cachelines: 1, members: 3 */
	/* padding: 4 bytes */
	/* last cacheline: 16 bytes */
};
/* tag "count of things" of STRUCT node, number 1 */
__u8 [0]; /* 0 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct node *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct node *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} nodes;
union number *; /* 8 bytes */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	union number *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	union number *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} numbers;
__s64 *; /* 8 bytes */
int *; /* 8 bytes */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	__s64 *key;                             /*    16      8 */
	int *value;                             /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	__s64 *key;                             /*    16      8 */
	int *value;                             /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} plain_ints;
__u8 (*)[2][3]; /* 8 bytes */
__u8 [3]; /* 3 bytes */
__u8 [2][3]; /* 6 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	__u8 (*value)[2][3];                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	__u8 (*value)[2][3];                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} arrays;
enum color *; /* 8 bytes */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	enum color *value;                      /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	enum color *value;                      /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} a_rather_long_name_of_a_map;
int (*)[12]; /* 8 bytes */
int [12]; /* 48 bytes */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[12];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[12];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare;
int (*)[40]; /* 8 bytes */
int [40]; /* 160 bytes */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[20];                    /*    16      8 */
	int (*value_size)[40];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
};
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[20];                    /*    16      8 */
	int (*value_size)[40];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare_long;
struct __sk_buff *; /* 8 bytes */
struct __sk_buff {
	__u32 len;                              /*     0      4 */
	__u32 pkt_type;                         /*     4      4 */
	__u32 mark;                             /*     8      4 */
	__u32 queue_mapping;                    /*    12      4 */
	__u32 protocol;                         /*    16      4 */
	__u32 vlan_present;                     /*    20      4 */
	__u32 vlan_tci;                         /*    24      4 */
	__u32 vlan_proto;                       /*    28      4 */
	__u32 priority;                         /*    32      4 */
	__u32 ingress_ifindex;                  /*    36      4 */
	__u32 ifindex;                          /*    40      4 */
	__u32 tc_index;                         /*    44      4 */
	__u32 cb[5];                            /*    48     20 */
	/* --- cacheline 1 boundary (64 bytes) was 4 bytes ago --- */
	__u32 hash;                             /*    68      4 */
	__u32 tc_classid;                       /*    72      4 */
	__u32 data;                             /*    76      4 */
	__u32 data_end;                         /*    80      4 */
	__u32 napi_id;                          /*    84      4 */
	__u32 family;                           /*    88      4 */
	__u32 remote_ip4;                       /*    92      4 */
	__u32 local_ip4;                        /*    96      4 */
	__u32 remote_ip6[4];                    /*   100     16 */
	__u32 local_ip6[4];                     /*   116     16 */
	/* --- cacheline 2 boundary (128 bytes) was 4 bytes ago --- */
	__u32 remote_port;                      /*   132      4 */
	__u32 local_port;                       /*   136      4 */
	__u32 data_meta;                        /*   140      4 */
	union {
		struct bpf_flow_keys *flow_keys; /*   144      8 */

		/* size: 8, members: 1 */
	};                                      /*   144      8 */
	__u64 tstamp;                           /*   152      8 */
	__u32 wire_len;                         /*   160      4 */
	__u32 gso_segs;                         /*   164      4 */
	union {
		struct bpf_sock *sk;            /*   168      8 */

		/* size: 8, members: 1 */
	};                                      /*   168      8 */
	__u32 gso_size;                         /*   176      4 */
	__u8 tstamp_type;                       /*   180      1 */
	/* XXX 3 bytes hole */
	__u64 hwtstamp;                         /*   184      8 */

	/* size: 192, cachelines: 3, members: 34 */
	/* holes: 1, sum holes: 3 */
};
__u32 [5]; /* 20 bytes */
__u32 [4]; /* 16 bytes */
union {
	struct bpf_flow_keys *flow_keys;        /*     0      8 */

	/* size: 8, cachelines: 1, members: 1 */
	/* last cacheline: 8 bytes */
};
struct bpf_flow_keys *; /* 8 bytes */
union {
	struct bpf_sock *sk;                    /*     0      8 */

	/* size: 8, cachelines: 1, members: 1 */
	/* last cacheline: 8 bytes */
};
struct bpf_sock *; /* 8 bytes */
int (struct __sk_buff *skb);
int touch(struct __sk_buff *skb);
struct point origin;
volatile __u32; /* 4 bytes */
volatile __u32 level;
char [12]; /* 12 bytes */
char title[12];
double ratio;
const volatile __u32; /* 4 bytes */
const volatile __u32 limit;
const struct point [2]; /* 16 bytes */
const struct point corners[2];
__u64 calls;
volatile int; /* 4 bytes */
static volatile int hidden;
struct bits last;
char _license[4];
enum color *unused_color;
float unused_float;
/* section .bss: 52 bytes */
__u64 calls;                                    /*     0      8 */
struct bits last;                               /*     8     32 */
enum color *unused_color;                       /*    40      8 */
float unused_float;                             /*    48      4 */
/* section .data: 36 bytes */
struct point origin;                            /*     0      8 */
volatile __u32 level;                           /*     8      4 */
char title[12];                                 /*    12     12 */
double ratio;                                   /*    24      8 */
static volatile int hidden;                     /*    32      4 */
/* section .maps: 544 bytes */
struct {
	int (*type)[6];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct point *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} per_cpu;                                      /*     0     32 */
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	__u64 *value;                           /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} per_cpu_hash;                                 /*    32     32 */
struct {
	int (*type)[5];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[20];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare_cpu;                                     /*    64     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct ints *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} ints;                                         /*    96     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct wide *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} wide;                                         /*   128     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct floats *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} floats;                                       /*   160     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct bits *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bits;                                         /*   192     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[2];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct nested *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} nested;                                       /*   224     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct packed *value;                   /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} packed;                                       /*   256     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct refs *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} refs;                                         /*   288     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	struct node *value;                     /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} nodes;                                        /*   320     32 */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	struct list_key *key;                   /*    16      8 */
	union number *value;                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} numbers;                                      /*   352     32 */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	__s64 *key;                             /*    16      8 */
	int *value;                             /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} plain_ints;                                   /*   384     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	__u8 (*value)[2][3];                    /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} arrays;                                       /*   416     32 */
struct {
	int (*type)[2];                         /*     0      8 */
	int (*max_entries)[1];                  /*     8      8 */
	__u32 *key;                             /*    16      8 */
	enum color *value;                      /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} a_rather_long_name_of_a_map;                  /*   448     32 */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[4];                     /*    16      8 */
	int (*value_size)[12];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare;                                         /*   480     32 */
struct {
	int (*type)[1];                         /*     0      8 */
	int (*max_entries)[4];                  /*     8      8 */
	int (*key_size)[20];                    /*    16      8 */
	int (*value_size)[40];                  /*    24      8 */

	/* size: 32, cachelines: 1, members: 4 */
	/* last cacheline: 32 bytes */
} bare_long;                                    /*   512     32 */
/* section .rodata: 20 bytes */
const volatile __u32 limit;                     /*     0      4 */
const struct point corners[2];                  /*     4     16 */
/* section license: 4 bytes */
char _license[4];                               /*     0      4 */
struct bpf_flow_keys;
struct bpf_sock;
int; 
__ARRAY_SIZE_TYPE__; 
typedef unsigned int __u32;
unsigned int; 
struct point {
	__s32 x;
	__s32 y;
};
typedef int __s32;
struct {
	int (*type)[6];
	int (*max_entries)[2];
	__u32 *key;
	struct point *value;
} per_cpu;
struct list_key {
	__u32 pid;
	enum color color;
	char comm[8];
};
enum color {
	RED = 0,
	GREEN = 7,
	BLUE = -3,
};
char; 
typedef unsigned long long __u64;
unsigned long long; 
struct {
	int (*type)[5];
	int (*max_entries)[4];
	struct list_key *key;
	__u64 *value;
} per_cpu_hash;
struct {
	int (*type)[5];
	int (*max_entries)[4];
	int (*key_size)[4];
	int (*value_size)[20];
} bare_cpu;
struct ints {
	schar s8;
	__u8 u8;
	__s16 s16;
	__u16 u16;
	__s32 s32;
	__u32 u32;
	__s64 s64;
	__u64 u64;
	flag_t flag;
	char letter;
};
typedef signed char schar;
signed char; 
typedef unsigned char __u8;
unsigned char; 
typedef short __s16;
short; 
typedef unsigned short __u16;
unsigned short; 
typedef long long __s64;
long long; 
typedef _Bool flag_t;
_Bool; 
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct ints *value;
} ints;
struct wide {
	__int128 s;
	unsigned __int128 u;
};
__int128; 
unsigned __int128; 
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct wide *value;
} wide;
struct floats {
	float single;
	double twice;
	float list[3];
};
float; 
double; 
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct floats *value;
} floats;
struct bits {
	unsigned int a: 1;
	unsigned int b: 7;
	int c: 5;
	unsigned int d: 19;
	unsigned long long e: 41;
	long long f: 33;
	_Bool g: 1;
	enum color h: 4;
	__u32 after;
};
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct bits *value;
} bits;
struct nested {
	struct point corner[2];
	__u16 grid[2][3];
	union {
		__u64 id;
		struct point at;
	};
	union number number;
	char name[16];
	char letters[4];
	enum color color;
	enum big big;
	enum low low;
};
union number {
	__u32 whole;
	__u8 bytes[4];
	struct {
		__u16 low;
		__u16 high;
	};
};
enum big {
	SMALL = 1,
	HUGE_ONE = 81985529216486895ULL,
};
enum low {
	LOWEST = -9223372032559808512LL,
	ZERO = 0,
};
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct nested *value;
} nested;
struct packed {
	__u8 first;
	__u32 second;
	__u16 third;
} __attribute__((packed));
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct packed *value;
} packed;
struct refs {
	struct unknown *opaque;
	int (*call)(const char *restrict, struct point);
	reg_t reg;
	int __attribute__((btf_type_tag("user"))) *user;
	const struct point *const *chain;
	void *nothing;
};
struct unknown;
typedef const volatile unsigned int *reg_t;
int __attribute__((btf_type_tag("user"))); 
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct refs *value;
} refs;
struct node {
	struct node *next;
	__u32 n;
	__u8 tail[0];
};
/* tag "count of things" of STRUCT node, number 1 */
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct node *value;
} nodes;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	struct list_key *key;
	union number *value;
} numbers;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	__s64 *key;
	int *value;
} plain_ints;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	__u8 (*value)[2][3];
} arrays;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	enum color *value;
} a_rather_long_name_of_a_map;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	int (*key_size)[4];
	int (*value_size)[12];
} bare;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	int (*key_size)[20];
	int (*value_size)[40];
} bare_long;
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	union {
		struct bpf_flow_keys *flow_keys;
	};
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	union {
		struct bpf_sock *sk;
	};
	__u32 gso_size;
	__u8 tstamp_type;
	__u64 hwtstamp;
};
int touch(struct __sk_buff *skb);
struct point origin;
volatile __u32 level;
char title[12];
double ratio;
const volatile __u32 limit;
const struct point corners[2];
__u64 calls;
static volatile int hidden;
struct bits last;
char _license[4];
enum color *unused_color;
float unused_float;
/* section .bss: 52 bytes */
__u64 calls;
struct bits last;
enum color *unused_color;
float unused_float;
/* section .data: 36 bytes */
struct point origin;
volatile __u32 level;
char title[12];
double ratio;
static volatile int hidden;
/* section .maps: 544 bytes */
struct {
	int (*type)[6];
	int (*max_entries)[2];
	__u32 *key;
	struct point *value;
} per_cpu;
struct {
	int (*type)[5];
	int (*max_entries)[4];
	struct list_key *key;
	__u64 *value;
} per_cpu_hash;
struct {
	int (*type)[5];
	int (*max_entries)[4];
	int (*key_size)[4];
	int (*value_size)[20];
} bare_cpu;
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct ints *value;
} ints;
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct wide *value;
} wide;
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct floats *value;
} floats;
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct bits *value;
} bits;
struct {
	int (*type)[2];
	int (*max_entries)[2];
	__u32 *key;
	struct nested *value;
} nested;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct packed *value;
} packed;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct refs *value;
} refs;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	struct node *value;
} nodes;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	struct list_key *key;
	union number *value;
} numbers;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	__s64 *key;
	int *value;
} plain_ints;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	__u8 (*value)[2][3];
} arrays;
struct {
	int (*type)[2];
	int (*max_entries)[1];
	__u32 *key;
	enum color *value;
} a_rather_long_name_of_a_map;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	int (*key_size)[4];
	int (*value_size)[12];
} bare;
struct {
	int (*type)[1];
	int (*max_entries)[4];
	int (*key_size)[20];
	int (*value_size)[40];
} bare_long;
/* section .rodata: 20 bytes */
const volatile __u32 limit;
const struct point corners[2];
/* section license: 4 bytes */
char _license[4];
struct bpf_flow_keys;
struct bpf_sock;
