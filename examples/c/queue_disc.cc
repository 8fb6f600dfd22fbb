// A queue disc for a simulator whose queues have Enqueue, Dequeue and Peek, as ns-3's do: the device of tidegate
// behind that interface. The simulator's packets stay its own; the library has their numbers. examples/ns3 has the same
// for ns-3 itself.
//
//     c++ queue_disc.cc $(pkg-config --cflags --libs tidegate) -o queue_disc
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tidegate.h>
#include <unordered_map>
#include <utility>

namespace simulator {

// What the simulator has: packets, and queues that its devices ask when they are free.
struct Packet {
    std::uint16_t source_port;
    std::uint32_t bytes;
    bool ecn_capable;
    bool congestion_experienced = false;
};

class QueueDisc {
  public:
    virtual ~QueueDisc() = default;
    virtual bool Enqueue(std::unique_ptr<Packet> packet, std::uint64_t now) = 0;
    virtual std::unique_ptr<Packet> Dequeue(std::uint64_t now) = 0;
    virtual const Packet *Peek(std::uint64_t now) = 0;
    // When a queue that gave nothing will have something: for shapers.
    virtual std::optional<std::uint64_t> NextTime() = 0;
};

} // namespace simulator

// Linux's qdiscs as the simulator's queue disc.
class TidegateQueueDisc final : public simulator::QueueDisc {
  public:
    explicit TidegateQueueDisc(const std::string &commands) {
        // The link is the simulator's: no rate.
        tidegate_config config{};
        config.size = sizeof config;
        config.flags = TIDEGATE_NO_ETHERNET;
        device_.reset(tidegate_create(&config, commands.c_str()));
        Check(device_ != nullptr);
    }

    bool Enqueue(std::unique_ptr<simulator::Packet> packet, std::uint64_t now) override {
        tidegate_packet offered{};
        offered.id = next_id_++;
        offered.length = packet->bytes;
        offered.ip_version = 4;
        offered.protocol = 17;
        offered.dsfield = packet->ecn_capable ? 2 : 0;
        offered.source_port = packet->source_port;
        offered.destination_port = 443;
        offered.source[0] = offered.destination[0] = 10;
        offered.destination[3] = 1;
        packets_.emplace(offered.id, std::move(packet));
        const int status = tidegate_offer(device_.get(), now, &offered);
        if (status == TIDEGATE_ERROR) {
            packets_.erase(offered.id);
            Check(false);
        }
        ForgetDropped();
        return status != TIDEGATE_REFUSED;
    }

    std::unique_ptr<simulator::Packet> Dequeue(std::uint64_t now) override {
        if (peeked_)
            return std::move(peeked_);
        tidegate_sent sent{};
        const int given = tidegate_poll(device_.get(), now, &sent);
        Check(given != TIDEGATE_ERROR);
        std::unique_ptr<simulator::Packet> packet;
        if (given == 1) {
            const auto found = packets_.find(sent.id);
            // Of a packet that a queue copied, the simulator gets copies; the last is the packet itself.
            packet = sent.last ? std::move(found->second) : std::make_unique<simulator::Packet>(*found->second);
            packet->congestion_experienced |= sent.marked != 0;
            if (sent.last)
                packets_.erase(found);
        }
        ForgetDropped();
        return packet;
    }

    // As in ns-3: what is peeked at is taken out, and held until it is dequeued.
    const simulator::Packet *Peek(std::uint64_t now) override {
        if (!peeked_)
            peeked_ = Dequeue(now);
        return peeked_.get();
    }

    std::optional<std::uint64_t> NextTime() override {
        const std::uint64_t next = tidegate_next_time(device_.get());
        return next == TIDEGATE_NEVER ? std::nullopt : std::optional(next);
    }

    std::uint64_t Dropped() const { return dropped_; }

  private:
    struct Free {
        void operator()(tidegate_device *device) const { tidegate_free(device); }
    };

    static void Check(bool is_fine) {
        if (!is_fine)
            throw std::runtime_error(tidegate_last_error());
    }

    void ForgetDropped() {
        tidegate_drop drop{};
        while (tidegate_next_drop(device_.get(), &drop) == 1) {
            dropped_++;
            if (drop.last)
                packets_.erase(drop.id);
        }
    }

    std::unique_ptr<tidegate_device, Free> device_;
    std::unordered_map<std::uint64_t, std::unique_ptr<simulator::Packet>> packets_;
    std::unique_ptr<simulator::Packet> peeked_;
    std::uint64_t next_id_ = 0;
    std::uint64_t dropped_ = 0;
};

// A burst of two flows and one packet of a third, through a device that takes a packet every 10 ms.
int main() try {
    TidegateQueueDisc queue("qdisc add dev eth0 root fq_codel limit 60 ecn");
    for (int n = 0; n < 100; n++)
        queue.Enqueue(std::make_unique<simulator::Packet>(simulator::Packet{5, 1250, n % 2 == 0}), 0);
    queue.Enqueue(std::make_unique<simulator::Packet>(simulator::Packet{6, 1250, true}), 0);
    queue.Enqueue(std::make_unique<simulator::Packet>(simulator::Packet{7, 100, false}), 0);

    int place = 0, sent = 0, marked = 0;
    for (std::uint64_t now = 0; queue.NextTime(); now += 10000000) {
        const simulator::Packet *head = queue.Peek(now);
        const auto packet = queue.Dequeue(now);
        if (!packet)
            break;
        if (head != packet.get())
            return 1;
        sent++;
        marked += packet->congestion_experienced;
        if (packet->source_port == 7)
            place = sent;
    }
    std::printf("%d sent, %d of them marked, %d dropped; the small flow's packet was number %d\n", sent, marked,
                static_cast<int>(queue.Dropped()), place);

    try {
        TidegateQueueDisc wrong("qdisc add dev eth0 root fq_kodel");
    } catch (const std::runtime_error &error) {
        std::printf("refused: %.78s\n", error.what());
    }
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "queue_disc: %s\n", error.what());
    return 1;
}
