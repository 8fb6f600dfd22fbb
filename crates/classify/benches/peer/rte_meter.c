// DPDK's rte_meter under the load of the policer's benchmark: a random meter for each packet of 64 bytes, one rate and one bucket in use,
// time moving on by a fixed step. It reads how many pieces of 65,536 packets to run from each line of its input, and answers with the time
// of a good piece (one in twenty is better) and of the median piece, ns per packet. Written from DPDK's programmer's guide and API reference.
//
// rte_meter METERS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_meter.h>

enum { PIECE = 65536, LENGTH = 64, MOST_PIECES = 4096 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    char *eal[] = {words[0], "--no-huge", "-m", "64", "--no-pci", "--log-level=1", "-l", "0", NULL};
    if (count < 2 || rte_eal_init(8, eal) < 0)
        return 1;
    uint32_t meters = atoi(words[1]), random_state = 12345;
    struct rte_meter_srtcm_params params = {.cir = 125000000, .cbs = 100000, .ebs = 0};
    struct rte_meter_srtcm_profile profile;
    struct rte_meter_srtcm *all = calloc(meters, sizeof *all);
    if (all == NULL || rte_meter_srtcm_profile_config(&profile, &params) != 0)
        return 1;
    for (uint32_t i = 0; i < meters; i++)
        rte_meter_srtcm_config(&all[i], &profile);
    // 64 bytes take 512 ns at this rate, and come every 450 at each meter: about one in eight exceeds.
    uint64_t time = rte_rdtsc(), step = rte_get_tsc_hz() * 450 / meters / 1000000000, green = 0;
    static double pieces[MOST_PIECES];
    unsigned wanted;
    while (scanf("%u", &wanted) == 1 && wanted > 0 && wanted <= MOST_PIECES) {
        for (unsigned piece = 0; piece < wanted; piece++) {
            double start = now_ns();
            for (int i = 0; i < PIECE; i++) {
                random_state = random_state * 1664525 + 1013904223;
                uint32_t meter = (uint64_t)random_state * meters >> 32;
                time += step;
                green += rte_meter_srtcm_color_blind_check(&all[meter], &profile, time, LENGTH) == RTE_COLOR_GREEN;
            }
            pieces[piece] = (now_ns() - start) / PIECE;
        }
        qsort(pieces, wanted, sizeof *pieces, by_size);
        printf("%.2f %.2f %lu\n", pieces[wanted / 20], pieces[wanted / 2], (unsigned long)green);
        fflush(stdout);
    }
    return 0;
}
