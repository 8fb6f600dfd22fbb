/* Every function with arguments that are wrong: what it returns and says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidegate.h>

static tidegate_device *device;

static void say(const char *what, long long result) {
    printf("%s: %lld: %s\n", what, result, tidegate_last_error());
}

static void create(const char *what, const tidegate_config *config, const char *commands) {
    tidegate_device *made = tidegate_create(config, commands);
    say(what, made != NULL);
    tidegate_free(made);
}

int main(void) {
    tidegate_config config = {.size = sizeof config};
    tidegate_packet packet = {.id = 1, .length = 1000, .ip_version = 4, .protocol = 17};
    static const uint8_t bytes[64];
    static char many[(1 << 20) + 2];
    tidegate_sent sent;
    tidegate_drop drop;
    tidegate_stats stats;

    create("no configuration", NULL, NULL);
    config.size = 8;
    create("size", &config, "");
    config = (tidegate_config){.size = sizeof config, .flags = 6};
    create("flags", &config, "");
    config = (tidegate_config){.size = sizeof config, .rate = UINT64_MAX};
    create("rate", &config, "");
    config = (tidegate_config){.size = sizeof config, .name = "eth 0"};
    create("name", &config, "");
    config = (tidegate_config){.size = sizeof config, .name = "\xff"};
    create("name's bytes", &config, "");
    memset(many, 'x', sizeof many - 1);
    config = (tidegate_config){.size = sizeof config, .name = many};
    create("name's length", &config, "");
    config = (tidegate_config){.size = sizeof config, .packets = 2, .seed = 1};
    create("long commands", &config, many);
    create("commands' bytes", &config, "qdisc \x80");
    create("command", &config, "# nothing\nqdisc add dev eth0 root nothing_such");
    create("misaligned", (const void *)((const char *)&config + 1), "");

    say("tc", tidegate_tc(NULL, 0, "qdisc show") != NULL);
    say("offer", tidegate_offer(NULL, 0, &packet));
    say("poll", tidegate_poll(NULL, 0, &sent));
    say("next_time", tidegate_next_time(NULL) == TIDEGATE_NEVER);
    say("next_drop", tidegate_next_drop(NULL, &drop));
    say("get_stats", tidegate_get_stats(NULL, &stats));
    tidegate_free(NULL);
    say("free", 0);

    device = tidegate_create(&config, "qdisc add dev eth0 root handle 1: pfifo limit 1");
    say("create", device != NULL);
    say("tc without commands", tidegate_tc(device, 0, NULL) != NULL);
    say("offer nothing", tidegate_offer(device, 0, NULL));
    packet.ip_version = 5;
    say("version", tidegate_offer(device, 0, &packet));
    packet.header_len = 4;
    say("NULL bytes", tidegate_offer(device, 0, &packet));
    packet.header = bytes;
    packet.header_len = UINT32_MAX;
    say("many bytes", tidegate_offer(device, 0, &packet));
    packet.header_len = 14;
    say("few bytes", tidegate_offer(device, 0, &packet));
    packet.header_len = sizeof bytes;
    packet.length = UINT32_MAX;
    say("length", tidegate_offer(device, 0, &packet));
    packet.length = 64;
    say("offer", tidegate_offer(device, 0, &packet));
    say("second offer", tidegate_offer(device, 0, &packet));
    say("third offer", tidegate_offer(device, 0, &packet));
    say("fourth offer", tidegate_offer(device, 0, &packet));
    say("drop to nowhere", tidegate_next_drop(device, NULL));
    say("drop", tidegate_next_drop(device, &drop));
    printf("  packet %d, last %d, cause %d, qdisc %x\n", (int)drop.id, (int)drop.last, (int)drop.cause,
           (unsigned)drop.qdisc);
    say("poll to nowhere", tidegate_poll(device, 0, NULL));
    say("poll", tidegate_poll(device, 5, &sent));
    printf("  packet %d, last %d, %d bytes of header\n", (int)sent.id, (int)sent.last, (int)sent.header_len);
    say("back in time", tidegate_poll(device, 4, &sent));
    say("far in time", tidegate_poll(device, UINT64_MAX, &sent));
    say("stats to nowhere", tidegate_get_stats(device, NULL));
    say("stats", tidegate_get_stats(device, &stats));
    printf("  offered %d, sent %d, dropped %d, waiting %d\n", (int)stats.offered, (int)stats.sent,
           (int)stats.dropped, (int)stats.waiting);
    say("change", tidegate_tc(device, 6, "qdisc change dev eth0 root pfifo limit 2\n?") != NULL);
    printf("%s", tidegate_tc(device, 6, "tc -s qdisc show dev eth0"));
    tidegate_free(device);
    printf("version %s\n", strcmp(tidegate_version(), TIDEGATE_VERSION) ? tidegate_version() : "as the header's");
    return 0;
}
