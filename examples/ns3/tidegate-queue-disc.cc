#include "tidegate-queue-disc.h"

#include "ns3/ipv4-queue-disc-item.h"
#include "ns3/ipv6-queue-disc-item.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

namespace ns3
{

namespace
{

const uint64_t NONE = UINT64_MAX;

// Why a packet was dropped, as ns-3's statistics name it.
const char* const CAUSES[] = {"", "full", "overflow", "aqm", "filter", "purged", "too long", "superseded"};

// What filters, hashes and AQMs read of an item. Its transport header is at the front of its packet.
tidegate_packet
Describe(Ptr<const QueueDiscItem> item)
{
    tidegate_packet packet{};
    packet.length = item->GetSize();
    if (auto v4 = DynamicCast<const Ipv4QueueDiscItem>(item))
    {
        const Ipv4Header& header = v4->GetHeader();
        packet.ip_version = 4;
        packet.protocol = header.GetProtocol();
        packet.dsfield = header.GetTos();
        header.GetSource().Serialize(packet.source);
        header.GetDestination().Serialize(packet.destination);
    }
    else if (auto v6 = DynamicCast<const Ipv6QueueDiscItem>(item))
    {
        const Ipv6Header& header = v6->GetHeader();
        packet.ip_version = 6;
        packet.protocol = header.GetNextHeader();
        packet.dsfield = header.GetTrafficClass();
        header.GetSource().Serialize(packet.source);
        header.GetDestination().Serialize(packet.destination);
    }
    uint8_t ports[4];
    const bool hasPorts = packet.protocol == 6 || packet.protocol == 17;
    if (hasPorts && item->GetPacket()->CopyData(ports, sizeof ports) == sizeof ports)
    {
        packet.source_port = static_cast<uint16_t>(ports[0] << 8 | ports[1]);
        packet.destination_port = static_cast<uint16_t>(ports[2] << 8 | ports[3]);
    }
    return packet;
}

uint64_t
NowNs()
{
    return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

} // namespace

NS_OBJECT_ENSURE_REGISTERED(TidegateItems);
NS_OBJECT_ENSURE_REGISTERED(TidegateQueueDisc);

TypeId
TidegateItems::GetTypeId()
{
    static TypeId tid = TypeId("ns3::TidegateItems")
                            .SetParent<Queue<QueueDiscItem>>()
                            .AddConstructor<TidegateItems>();
    return tid;
}

void
TidegateItems::Put(uint64_t id, Ptr<QueueDiscItem> item)
{
    // The library bounds what waits.
    SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, GetNPackets() + 1));
    Iterator place;
    DoEnqueue(GetContainer().end(), item, place);
    m_places.emplace(id, place);
}

Ptr<QueueDiscItem>
TidegateItems::Take(uint64_t id)
{
    const auto found = m_places.find(id);
    NS_ABORT_MSG_IF(found == m_places.end(), "tidegate: packet " << id << " was not put in");
    Ptr<QueueDiscItem> item = DoDequeue(found->second);
    m_places.erase(found);
    return item;
}

// The queue disc knows which item is next, this store does not.
bool
TidegateItems::Enqueue(Ptr<QueueDiscItem>)
{
    return false;
}

Ptr<QueueDiscItem>
TidegateItems::Dequeue()
{
    return nullptr;
}

Ptr<QueueDiscItem>
TidegateItems::Remove()
{
    return nullptr;
}

Ptr<const QueueDiscItem>
TidegateItems::Peek() const
{
    return nullptr;
}

TypeId
TidegateQueueDisc::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::TidegateQueueDisc")
            .SetParent<QueueDisc>()
            .SetGroupName("TrafficControl")
            .AddConstructor<TidegateQueueDisc>()
            .AddAttribute("Commands",
                          "tc commands for the device eth0, one on each line",
                          StringValue("qdisc add dev eth0 root fq_codel"),
                          MakeStringAccessor(&TidegateQueueDisc::m_commands),
                          MakeStringChecker())
            .AddAttribute("Seed",
                          "The seed of its random draws and of its flow hashes",
                          UintegerValue(1),
                          MakeUintegerAccessor(&TidegateQueueDisc::m_seed),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute("Mtu",
                          "Bytes of the largest packet, from which qdiscs take their quantum",
                          UintegerValue(1500),
                          MakeUintegerAccessor(&TidegateQueueDisc::m_mtu),
                          MakeUintegerChecker<uint32_t>(68, 65535));
    return tid;
}

TidegateQueueDisc::TidegateQueueDisc()
    : QueueDisc(QueueDiscSizePolicy::NO_LIMITS),
      m_nextId(0)
{
}

void
TidegateQueueDisc::Check(bool isFine)
{
    NS_ABORT_MSG_UNLESS(isFine, tidegate_last_error());
}

bool
TidegateQueueDisc::CheckConfig()
{
    return GetNQueueDiscClasses() == 0 && GetNPacketFilters() == 0;
}

void
TidegateQueueDisc::InitializeParams()
{
    m_items = CreateObject<TidegateItems>();
    AddInternalQueue(m_items);
    tidegate_config config{};
    config.size = sizeof config;
    config.flags = TIDEGATE_NO_ETHERNET;
    config.seed = m_seed;
    config.mtu = m_mtu;
    config.start = NowNs();
    m_device.reset(tidegate_create(&config, m_commands.c_str()));
    Check(m_device != nullptr);
}

bool
TidegateQueueDisc::DoEnqueue(Ptr<QueueDiscItem> item)
{
    tidegate_packet packet = Describe(item);
    packet.id = m_nextId++;
    Check(tidegate_offer(m_device.get(), NowNs(), &packet) != TIDEGATE_ERROR);
    if (ReadDrops(packet.id))
    {
        DropBeforeEnqueue(item, "tidegate: refused");
        return false;
    }
    m_items->Put(packet.id, item);
    return true;
}

Ptr<QueueDiscItem>
TidegateQueueDisc::DoDequeue()
{
    tidegate_sent sent{};
    const int given = tidegate_poll(m_device.get(), NowNs(), &sent);
    Check(given != TIDEGATE_ERROR);
    ReadDrops(NONE);
    if (given == 1)
    {
        Ptr<QueueDiscItem> item = m_items->Take(sent.id);
        if (sent.marked)
        {
            Mark(item, "tidegate: mark");
        }
        return item;
    }
    const uint64_t next = tidegate_next_time(m_device.get());
    if (next != TIDEGATE_NEVER && GetNPackets() > 0)
    {
        // A shaper holds its packets until then.
        m_wake.Cancel();
        m_wake = Simulator::Schedule(NanoSeconds(static_cast<int64_t>(next - NowNs())), &QueueDisc::Run, this);
    }
    return nullptr;
}

bool
TidegateQueueDisc::ReadDrops(uint64_t offered)
{
    bool isAmong = false;
    tidegate_drop drop{};
    while (tidegate_next_drop(m_device.get(), &drop) == 1)
    {
        if (drop.id == offered)
        {
            isAmong = true;
        }
        else
        {
            DropAfterDequeue(m_items->Take(drop.id), CAUSES[drop.cause]);
        }
    }
    return isAmong;
}

} // namespace ns3
