// The same network with ns-3's own fq_codel and with Linux's, and CAKE, which ns-3 has not: two CUBIC uploads and a
// call through a bottleneck of 10 Mbit/s, 20 ms each way.
//
//     flags="$(pkg-config --cflags --libs tidegate ns3-applications ns3-point-to-point)"
//     c++ -std=c++17 compare.cc tidegate-queue-disc.cc $flags -o compare
//     ./compare --seconds=30
#include "tidegate-queue-disc.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

using namespace ns3;

namespace
{

constexpr std::size_t FLOWS = 3;
const uint16_t PORTS[FLOWS] = {5001, 5002, 5003};

// What the bottleneck's queue did to a flow.
std::array<std::vector<double>, FLOWS> sojourns;

void
Dequeued(Ptr<const QueueDiscItem> item)
{
    uint8_t ports[4] = {};
    item->GetPacket()->CopyData(ports, sizeof ports);
    for (std::size_t flow = 0; flow < FLOWS; flow++)
    {
        if (PORTS[flow] == (ports[2] << 8 | ports[3]))
        {
            sojourns[flow].push_back((Simulator::Now() - item->GetTimeStamp()).GetSeconds() * 1000);
        }
    }
}

double
Mean(const std::vector<double>& values)
{
    double sum = 0;
    for (const double value : values)
    {
        sum += value;
    }
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double
Percentile(std::vector<double> values, double share)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// One run: prints a row.
void
Run(const char* name, const TrafficControlHelper& queue, double seconds, bool ecn)
{
    RngSeedManager::SetSeed(1);
    sojourns.fill({});
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 21));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 21));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));

    NodeContainer nodes;
    nodes.Create(4); // two senders, router, receiver
    InternetStackHelper().Install(nodes);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1us"));
    PointToPointHelper narrow;
    narrow.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    narrow.SetChannelAttribute("Delay", StringValue("20ms"));
    // The device's own ring: as short as possible, so that packets wait in the qdisc.
    narrow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    const NetDeviceContainer links[] = {
        access.Install(nodes.Get(0), nodes.Get(2)),
        access.Install(nodes.Get(1), nodes.Get(2)),
        narrow.Install(nodes.Get(2), nodes.Get(3)),
    };
    TrafficControlHelper installer = queue;
    const QueueDiscContainer installed = installer.Install(links[2].Get(0));
    Ipv4AddressHelper addresses;
    Ipv4Address receiver;
    for (std::size_t link = 0; link < 3; link++)
    {
        addresses.SetBase(Ipv4Address(0x0a000000 + (static_cast<uint32_t>(link) << 8)), "255.255.255.0");
        receiver = addresses.Assign(links[link]).GetAddress(1);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer sinks;
    for (std::size_t flow = 0; flow < FLOWS; flow++)
    {
        const bool isCall = flow == 2;
        const char* factory = isCall ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
        const InetSocketAddress to(receiver, PORTS[flow]);
        sinks.Add(PacketSinkHelper(factory, to).Install(nodes.Get(3)));
        if (isCall)
        {
            UdpClientHelper call(receiver, PORTS[flow]);
            call.SetAttribute("Interval", TimeValue(MilliSeconds(20)));
            call.SetAttribute("PacketSize", UintegerValue(172));
            call.SetAttribute("MaxPackets", UintegerValue(1 << 30));
            call.Install(nodes.Get(0)).Start(Seconds(0.1));
        }
        else
        {
            BulkSendHelper upload(factory, to);
            upload.Install(nodes.Get(static_cast<uint32_t>(flow))).Start(Seconds(0.1 * static_cast<double>(flow)));
        }
    }
    const Ptr<QueueDisc> disc = installed.Get(0);
    disc->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();

    const QueueDisc::Stats& stats = disc->GetStats();
    double rates[FLOWS];
    for (uint32_t flow = 0; flow < FLOWS; flow++)
    {
        rates[flow] = DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx() * 8 / seconds / 1e6;
    }
    std::printf("%-28s %5.2f %5.2f %10.2f %6.2f %10.2f %6.2f %8u %7u\n",
                name,
                rates[0],
                rates[1],
                Mean(sojourns[0]),
                Percentile(sojourns[0], 0.99),
                Mean(sojourns[2]),
                Percentile(sojourns[2], 0.99),
                stats.nTotalDroppedPackets,
                stats.nTotalMarkedPackets);
    Simulator::Destroy();
}

TrafficControlHelper
Linux(const char* commands)
{
    TrafficControlHelper queue;
    queue.SetRootQueueDisc("ns3::TidegateQueueDisc", "Commands", StringValue(commands));
    return queue;
}

} // namespace

int
main(int argc, char** argv)
{
    double seconds = 30;
    CommandLine options(__FILE__);
    options.AddValue("seconds", "How long each run is", seconds);
    options.Parse(argc, argv);
    // Objects that are only named in strings.
    TidegateQueueDisc::GetTypeId();

    std::printf("                              uploads,    queue of the first     queue of the call\n");
    std::printf("                               Mbit/s     ms: mean    p99     ms: mean    p99  dropped  marked\n");
    for (const bool ecn : {false, true})
    {
        std::printf("%s\n", ecn ? "with ECN" : "without ECN");
        TrafficControlHelper own;
        own.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                             "UseEcn",
                             BooleanValue(ecn),
                             "MaxSize",
                             StringValue("10240p"));
        Run("  ns-3's fq_codel", own, seconds, ecn);
        Run("  Linux's fq_codel", Linux("qdisc add dev eth0 root fq_codel"), seconds, ecn);
        Run("  Linux's CAKE", Linux("qdisc add dev eth0 root cake besteffort"), seconds, ecn);
    }
    return 0;
}
