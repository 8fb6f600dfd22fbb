/* tidegate.h: Linux's queueing disciplines (qdiscs) as a library.
 *
 * A device is the egress of a network device: its qdiscs come from tc commands, packets are offered to it and taken
 * from it. There are no threads, no clock and no input or output: time is an argument, in nanoseconds since an
 * origin of your choice. The same configuration, seed and calls give the same results on every machine.
 *
 *     tidegate_config config = {.size = sizeof config, .rate = 10000000};
 *     tidegate_device *device = tidegate_create(&config, "tc qdisc add dev eth0 root fq_codel");
 *     if (!device)
 *         fprintf(stderr, "%s\n", tidegate_last_error());
 *
 * The loop: offer each packet when it comes; after that, and whenever tidegate_next_time has come, poll until
 * nothing is given; read the drops until nothing is given.
 *
 * A device may be used by one thread at a time; different devices do not know of each other. Every pointer is
 * checked for NULL and alignment, every value for its range; what is wrong is an error with a message, and the call
 * has changed nothing but what its description says.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TIDEGATE_H
#define TIDEGATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: see tidegate_version. */
#define TIDEGATE_VERSION "0.2.0"

/* No time: nothing is due. */
#define TIDEGATE_NEVER UINT64_MAX

/* A call failed: tidegate_last_error says where, why, and what to do. */
#define TIDEGATE_ERROR (-1)

/* What Linux returns to the sender of a packet. */
#define TIDEGATE_QUEUED 0
#define TIDEGATE_CONGESTED 1 /* a packet of its flow was dropped: slow down */
#define TIDEGATE_REFUSED 2   /* this packet was dropped: tidegate_next_drop reports it */

/* tidegate_config.flags: packets begin with their IP header, as on a ppp or tun device. */
#define TIDEGATE_NO_ETHERNET 1

/* Why a packet was dropped. */
#define TIDEGATE_DROP_FULL 1       /* the queue was full when it came */
#define TIDEGATE_DROP_OVERFLOW 2   /* the queue was full, and this packet, which waited, made room */
#define TIDEGATE_DROP_AQM 3        /* the queue's AQM signalled congestion */
#define TIDEGATE_DROP_FILTER 4     /* a filter, an action, or the lack of a class */
#define TIDEGATE_DROP_PURGED 5     /* its queue was deleted, emptied or made smaller */
#define TIDEGATE_DROP_TOO_LONG 6   /* longer than the shaper's bucket can ever hold */
#define TIDEGATE_DROP_SUPERSEDED 7 /* an acknowledgement that a later one replaces */

/* A device; opaque. */
typedef struct tidegate_device tidegate_device;

/* How a device is made. Members that are 0 have the default that is named. */
typedef struct tidegate_config {
    uint32_t size;         /* sizeof(tidegate_config) */
    uint32_t flags;        /* TIDEGATE_NO_ETHERNET, or 0 */
    const char *name;      /* its name in commands, 1 to 15 letters; NULL: eth0 */
    uint64_t rate;         /* the link's rate, bit/s, up to 10^12; 0: the link is yours, you poll when it is free */
    uint64_t start;        /* the time of the first commands, ns; calls cannot be earlier */
    uint64_t seed;         /* of all random draws, and of how flows are hashed to queues */
    uint32_t mtu;          /* bytes of the largest network packet, 68 to 65535; 0: 1500 */
    uint32_t tx_queue_len; /* packets, the default limit of pfifo and others; 0: 1000 */
    uint32_t hz;           /* timer ticks per second of the kernel: 100, 250, 300, 1000; 0: 250 */
    uint32_t packets;      /* the most packets that may wait, up to 65536; 0: 65536 */
} tidegate_config;

/* A packet that is offered. Give either its first bytes in `header`, or `header` NULL and the fields below, from
 * which the library makes header bytes. */
typedef struct tidegate_packet {
    uint64_t id;           /* your number for it, which comes back */
    const uint8_t *header; /* from the Ethernet header on, or from the IP header with TIDEGATE_NO_ETHERNET; or NULL */
    uint32_t header_len;   /* how many bytes: 128 are enough; all, if filters rewrite packets (checksums) */
    uint32_t length;       /* bytes on the device: Ethernet header (14) and IP packet, without FCS and preamble */
    uint32_t mark;         /* the firewall mark (skb->mark), which fw filters read; 0: none */
    uint32_t priority;     /* skb->priority: a band, or a class id (major << 16 | minor); 0: none */
    uint8_t ip_version;    /* 4 or 6 */
    uint8_t protocol;      /* 6 TCP, 17 UDP, ... */
    uint8_t dsfield;       /* DSCP << 2 | ECN: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE */
    uint8_t reserved;      /* 0 */
    uint16_t source_port;  /* in the host's byte order, as the other numbers */
    uint16_t destination_port;
    uint8_t source[16]; /* in network byte order; IPv4 has the first four bytes */
    uint8_t destination[16];
} tidegate_packet;

/* A packet that the device sends. */
typedef struct tidegate_sent {
    uint64_t id;           /* your number for it */
    uint64_t offered;      /* when it was offered, ns */
    uint64_t finished;     /* when the link has sent its last bit, ns; the time of the call where the link is yours */
    const uint8_t *header; /* its front as it leaves, marks and rewritten bytes included: valid until the next
                            * tidegate_poll or tidegate_free of this device */
    uint32_t header_len;   /* up to 128 */
    uint32_t length;       /* bytes on the device */
    uint32_t mark;         /* as it leaves */
    uint32_t priority;     /* as it leaves */
    uint8_t dsfield;       /* as it leaves: DSCP << 2 | ECN */
    uint8_t last;          /* 1: no report of this packet follows; see tidegate_next_drop */
    uint8_t marked;        /* 1: a queue marked congestion: it came without CE and leaves with it */
    uint8_t rewritten;     /* 1: its bytes were rewritten on the way: see `header` */
    uint32_t reserved;
} tidegate_sent;

/* A packet that the device dropped. */
typedef struct tidegate_drop {
    uint64_t id;      /* your number for it */
    uint64_t offered; /* when it was offered, ns */
    uint64_t dropped; /* when it was dropped, ns */
    uint32_t length;  /* bytes */
    uint32_t qdisc;   /* the handle of the qdisc that did it (major << 16); 0: one without a handle, or none */
    uint32_t cause;   /* TIDEGATE_DROP_... */
    uint32_t last;    /* 1: no report of this packet follows */
} tidegate_drop;

/* What a device counted: offered + copied = sent + dropped + waiting. tc's own counters are in its listings. */
typedef struct tidegate_stats {
    uint64_t offered;       /* packets taken */
    uint64_t copied;        /* copies that queues made of them (netem duplicate, mirred) */
    uint64_t sent;          /* packets sent */
    uint64_t sent_bytes;    /* their bytes */
    uint64_t dropped;       /* packets dropped */
    uint64_t marked;        /* packets sent with a mark that they came without */
    uint32_t waiting;       /* packets in the device */
    uint32_t waiting_bytes; /* bytes that wait, as the root qdisc counts them */
    uint32_t overlimits;    /* how often the root qdisc put sending off */
    uint32_t reserved;
} tidegate_stats;

/* Makes a device. `commands` are tc commands, one on each line, with or without the word tc; # begins a comment. NULL
 * or "": packets wait in a pfifo_fast, as in Linux. `config` NULL: all defaults. NULL is returned where a command or
 * the configuration is refused; then the message names the line. Warnings of commands that were accepted are in
 * tidegate_last_error. At most 1 MiB of commands are read at once. */
tidegate_device *tidegate_create(const tidegate_config *config, const char *commands);

/* Carries out tc commands on a device, as tidegate_create, and returns what they list, "" if nothing:
 * "-s -j qdisc show dev eth0" is tc's JSON with all counters. The text is valid until the next tidegate_tc or
 * tidegate_free of this device. NULL: a command was refused; those before it were carried out. */
const char *tidegate_tc(tidegate_device *device, uint64_t now, const char *commands);

/* Offers a packet: TIDEGATE_QUEUED, TIDEGATE_CONGESTED or TIDEGATE_REFUSED, as Linux answers its sender. Whatever it
 * is, the packet was taken, and its end is reported once, by tidegate_poll or tidegate_next_drop. With TIDEGATE_ERROR
 * it was not taken. `packet` and its bytes are not used after the call. */
int tidegate_offer(tidegate_device *device, uint64_t now, const tidegate_packet *packet);

/* The next packet that the device sends at this time: 1 and `sent`, or 0 where nothing may be sent now or the link is
 * busy. */
int tidegate_poll(tidegate_device *device, uint64_t now, tidegate_sent *sent);

/* When the device should be polled next: the time of the latest call, if a packet may be ready; TIDEGATE_NEVER, if
 * nothing waits and no timer runs. Every other call may change it. Time must go on in steps of at most an hour. */
uint64_t tidegate_next_time(tidegate_device *device);

/* The oldest drop that was not read yet: 1 and `drop`, or 0. A queue may copy packets; each copy ends on its own, and
 * `last` is 1 in the report after which none follows: then what you keep for the packet can be freed. Read all drops
 * after each call; with `packets` unread ones offers are refused. */
int tidegate_next_drop(tidegate_device *device, tidegate_drop *drop);

/* Counters: 0, or TIDEGATE_ERROR. */
int tidegate_get_stats(tidegate_device *device, tidegate_stats *stats);

/* What the latest call of this thread has to say: the error, or the warnings of commands; "" if there is nothing. The
 * text, in UTF-8, is valid until the next call of this thread. */
const char *tidegate_last_error(void);

/* The version of the library that runs, as "0.2.0". Programs built with another TIDEGATE_VERSION of the same minor
 * number (before 1.0), later of the same major number, may use it. */
const char *tidegate_version(void);

/* Frees a device and the packets in it, which are not reported any more. NULL is allowed. */
void tidegate_free(tidegate_device *device);

#ifdef __cplusplus
}
#endif

#endif
