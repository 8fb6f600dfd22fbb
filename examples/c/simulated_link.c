/* A simulated link with Linux's queue in it, for a simulator of one's own: an event loop, senders that react to ECN
 * marks and drops, and tidegate's device as the bottleneck. This is how a simulated link such as picoquic's gets
 * fq_codel, CAKE or DualPI2 instead of a FIFO.
 *
 *     cc simulated_link.c $(pkg-config --cflags --libs tidegate) -o simulated_link
 *     ./simulated_link 10 "qdisc add dev eth0 root fq_codel"
 *
 * Four flows share 10 Mbit/s with 20 ms of delay in each direction: two with Reno's response to ECN (RFC 3168), one
 * with a scalable response (RFC 9331, as DCTCP's), and a call of 200-byte packets every 20 ms. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tidegate.h>

enum { FLOWS = 4, SEGMENT = 1250, CALL = 214, MOST_EVENTS = 1 << 16, MOST_PACKETS = 1 << 16 };

#define MS UINT64_C(1000000)
static const uint64_t rate = 10000000, delay = 20 * MS;

/* The caller's packet: what the library gives back is its number. */
typedef struct packet {
    int flow;
} packet;

typedef struct flow {
    const char *name;
    uint8_t ecn;        /* 2: ECT(0), 1: ECT(1), 0: not capable */
    int scalable;       /* halves by the share of marks, not at each */
    double window;      /* segments; 0: sends by the clock */
    double flight;      /* segments on their way */
    double alpha;       /* the share of marks, smoothed */
    uint64_t acked, marked_acks, round_end;
    uint64_t delivered, bytes, marks, drops, queued_ns, most_queued_ns;
} flow;

static flow flows[FLOWS] = {
    {.name = "reno 1", .ecn = 2, .window = 10},
    {.name = "reno 2", .ecn = 2, .window = 10},
    {.name = "scalable", .ecn = 1, .scalable = 1, .window = 10},
    {.name = "call", .ecn = 0},
};

/* --- events: a heap by time, then by the order in which they were made */

typedef enum kind { POLL, ACK, LOSS, TICK } kind;
typedef struct event {
    uint64_t at, number;
    kind kind;
    int flow, marked;
} event;

static event heap[MOST_EVENTS];
static size_t events;
static uint64_t made;

static int before(const event *a, const event *b) {
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void schedule(uint64_t at, kind kind, int flow, int marked) {
    if (events == MOST_EVENTS) {
        fprintf(stderr, "simulated_link: more than %d events\n", MOST_EVENTS);
        exit(1);
    }
    size_t hole = events++;
    event new = {at, made++, kind, flow, marked};
    for (; hole > 0 && before(&new, &heap[(hole - 1) / 2]); hole = (hole - 1) / 2)
        heap[hole] = heap[(hole - 1) / 2];
    heap[hole] = new;
}

static event next_event(void) {
    event first = heap[0], last = heap[--events];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child + 1 < events && before(&heap[child + 1], &heap[child]))
            child++;
        if (child >= events || !before(&heap[child], &last))
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return first;
}

/* --- the link */

static tidegate_device *device;
static uint64_t polls_at = TIDEGATE_NEVER;
static packet *packets[MOST_PACKETS];
static size_t next_packet;

static void fail(void) {
    fprintf(stderr, "simulated_link: %s\n", tidegate_last_error());
    exit(1);
}

/* The sender of a packet learns of its end a round trip after it was sent. */
static void serve(uint64_t now) {
    tidegate_sent sent;
    tidegate_drop drop;
    int given;
    while ((given = tidegate_poll(device, now, &sent)) == 1) {
        flow *flow = &flows[packets[sent.id]->flow];
        uint64_t queued = now - sent.offered;
        flow->delivered++;
        flow->bytes += sent.length;
        flow->marks += sent.marked;
        flow->queued_ns += queued;
        if (queued > flow->most_queued_ns)
            flow->most_queued_ns = queued;
        schedule(sent.finished + 2 * delay, ACK, packets[sent.id]->flow, (sent.dsfield & 3) == 3);
        if (sent.last) {
            free(packets[sent.id]);
            packets[sent.id] = NULL;
        }
    }
    if (given < 0)
        fail();
    while (tidegate_next_drop(device, &drop) == 1) {
        flows[packets[drop.id]->flow].drops++;
        schedule(now + 2 * delay, LOSS, packets[drop.id]->flow, 0);
        if (drop.last) {
            free(packets[drop.id]);
            packets[drop.id] = NULL;
        }
    }
    uint64_t next = tidegate_next_time(device);
    if (next != TIDEGATE_NEVER && next != polls_at)
        schedule(polls_at = next, POLL, 0, 0);
}

static void send(uint64_t now, int from, uint32_t length) {
    while (packets[next_packet])
        next_packet = (next_packet + 1) % MOST_PACKETS;
    if (!(packets[next_packet] = malloc(sizeof(packet))))
        exit(1);
    packets[next_packet]->flow = from;
    tidegate_packet packet = {
        .id = next_packet,
        .length = length,
        .ip_version = 4,
        .protocol = 17,
        .dsfield = flows[from].ecn,
        .source_port = (uint16_t)(5000 + from),
        .destination_port = 443,
        .source = {192, 0, 2, 1},
        .destination = {198, 51, 100, 7},
    };
    if (tidegate_offer(device, now, &packet) == TIDEGATE_ERROR)
        fail();
    serve(now);
}

/* --- the senders */

static void fill(uint64_t now, int which) {
    flow *flow = &flows[which];
    while (flow->flight + 1 <= flow->window) {
        flow->flight++;
        send(now, which, SEGMENT);
    }
}

/* Once a round trip: a mark or a loss makes the window smaller. */
static void round_over(flow *flow, uint64_t now, int lost) {
    if (now < flow->round_end)
        return;
    double share = flow->acked ? (double)flow->marked_acks / (double)flow->acked : 0;
    flow->alpha += (share - flow->alpha) / 16;
    double cut = flow->scalable && !lost ? flow->alpha / 2 : 0.5;
    if (flow->marked_acks || lost) {
        flow->window = flow->window * (1 - cut) > 2 ? flow->window * (1 - cut) : 2;
        flow->round_end = now + 2 * delay;
    } else {
        flow->round_end = now + 1;
    }
    flow->acked = flow->marked_acks = 0;
}

static void handle(const event *event, uint64_t now) {
    flow *flow = &flows[event->flow];
    switch (event->kind) {
    case POLL:
        if (polls_at == now)
            polls_at = TIDEGATE_NEVER;
        serve(now);
        break;
    case TICK:
        send(now, event->flow, CALL);
        schedule(now + 20 * MS, TICK, event->flow, 0);
        break;
    case ACK:
    case LOSS:
        if (!flow->window)
            break;
        flow->flight--;
        flow->acked++;
        flow->marked_acks += (uint64_t)event->marked;
        if (event->kind == LOSS || event->marked)
            round_over(flow, now, event->kind == LOSS);
        else
            flow->window += 1 / flow->window;
        fill(now, event->flow);
        break;
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    const char *commands = argc > 2 ? argv[2] : "qdisc add dev eth0 root fq_codel";
    tidegate_config config = {.size = sizeof config, .rate = rate, .seed = 1};
    if (!(device = tidegate_create(&config, commands)))
        fail();
    for (int which = 0; which < FLOWS; which++) {
        if (flows[which].window)
            fill(0, which);
        else
            schedule(0, TICK, which, 0);
    }
    uint64_t end = (uint64_t)(seconds * 1e9);
    while (events && heap[0].at <= end) {
        event event = next_event();
        handle(&event, event.at);
    }

    printf("flow        Mbit/s  queue ms: mean    most  marked  dropped\n");
    for (int which = 0; which < FLOWS; which++) {
        const flow *flow = &flows[which];
        double packets_sent = flow->delivered ? (double)flow->delivered : 1;
        printf("%-10s %7.3f %15.2f %7.2f %7" PRIu64 " %8" PRIu64 "\n", flow->name,
               (double)flow->bytes * 8 / seconds / 1e6, (double)flow->queued_ns / packets_sent / 1e6,
               (double)flow->most_queued_ns / 1e6, flow->marks, flow->drops);
    }
    tidegate_stats stats;
    if (tidegate_get_stats(device, &stats))
        fail();
    printf("%" PRIu64 " offered = %" PRIu64 " sent + %" PRIu64 " dropped + %" PRIu32 " waiting\n", stats.offered,
           stats.sent, stats.dropped, stats.waiting);
    if (stats.offered + stats.copied != stats.sent + stats.dropped + stats.waiting)
        return 1;
    tidegate_free(device);
    for (size_t id = 0; id < MOST_PACKETS; id++)
        free(packets[id]);
    return 0;
}
