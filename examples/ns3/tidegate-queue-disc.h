// Linux's qdiscs (fq_codel, CAKE, DualPI2, HTB, ...) as an ns-3 queue disc: its attribute Commands has tc commands.
#ifndef TIDEGATE_QUEUE_DISC_H
#define TIDEGATE_QUEUE_DISC_H

#include "ns3/queue-disc.h"
#include "ns3/queue.h"

#include <cstdint>
#include <memory>
#include <string>
#include <tidegate.h>
#include <unordered_map>

namespace ns3
{

// The items that wait in a TidegateQueueDisc, in the order in which they came: any of them can leave.
class TidegateItems : public Queue<QueueDiscItem>
{
  public:
    static TypeId GetTypeId();
    bool Enqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> Dequeue() override;
    Ptr<QueueDiscItem> Remove() override;
    Ptr<const QueueDiscItem> Peek() const override;

    // Puts an item in under this number.
    void Put(uint64_t id, Ptr<QueueDiscItem> item);
    // Takes it out.
    Ptr<QueueDiscItem> Take(uint64_t id);

  private:
    std::unordered_map<uint64_t, ConstIterator> m_places;
};

class TidegateQueueDisc : public QueueDisc
{
  public:
    static TypeId GetTypeId();
    TidegateQueueDisc();

  private:
    struct Free
    {
        void operator()(tidegate_device* device) const
        {
            tidegate_free(device);
        }
    };

    bool DoEnqueue(Ptr<QueueDiscItem> item) override;
    Ptr<QueueDiscItem> DoDequeue() override;
    bool CheckConfig() override;
    void InitializeParams() override;

    // Reads the drops; true if the packet with this number is among them, which is not in the store yet.
    bool ReadDrops(uint64_t offered);
    static void Check(bool isFine);

    std::string m_commands;
    uint64_t m_seed;
    uint32_t m_mtu;
    std::unique_ptr<tidegate_device, Free> m_device;
    Ptr<TidegateItems> m_items;
    EventId m_wake;
    uint64_t m_nextId;
};

} // namespace ns3

#endif
