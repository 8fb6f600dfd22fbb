//! Routes and tunnels: changed, shown, looked up.

use crate::call::Reply;
use crate::host::{is_default, network};
use crate::shim::ToolShim;
use std::net::IpAddr;
use tidegate_policy::{LinkDriver, TunnelMode};
use tidegate_syntax::ip::{IpFlags, Route, RouteVerb, route_text};

/// The most routes that are kept.
const MAX_ROUTES: usize = 10_000;

pub(super) fn change(shim: &mut ToolShim<'_>, verb: RouteVerb, mut route: Route) -> Result<(), Reply> {
    let answers = |code: &str| Err(Reply::error(2, format!("RTNETLINK answers: {code}\n")));
    let (host, gateway) = (&mut shim.machine.host, &shim.machine.gateway);
    route.to.0 = network(route.to.0, route.to.1);
    // What a script sets takes the place of the route that was only assumed.
    let assumed = host.routes.iter().position(is_default).filter(|_| host.assumes_default);
    if is_default(&route) {
        host.assumes_default = false;
    }
    if let (Some(at), true, true) = (assumed, is_default(&route), verb != RouteVerb::Delete) {
        let assumed = host.routes.remove(at);
        if route.dev.is_none() && route.via.is_none_or(|via| host.route_to(gateway, via).is_none()) {
            route.dev = assumed.dev;
        }
    }
    let same = |known: &Route| known.to == route.to && (route.metric == 0 || known.metric == route.metric);
    let at = host.routes.iter().position(same);
    if verb == RouteVerb::Delete {
        return match at {
            Some(at) => {
                host.routes.remove(at);
                Ok(())
            }
            None => answers("No such process"),
        };
    }
    // The next router must be on a network that a device is in.
    if let Some(via) = route.via
        && route.dev.is_none()
    {
        let near = host.route_to(gateway, via).filter(|near| near.via.is_none());
        let Some(dev) = near.and_then(|near| near.dev) else {
            return Err(Reply::error(2, "Error: Nexthop has invalid gateway.\n"));
        };
        route.dev = Some(dev);
    }
    route.scope_link |= route.via.is_none();
    match (at, verb) {
        (Some(_), RouteVerb::Add) => answers("File exists"),
        (Some(at), _) => {
            host.routes[at] = route;
            Ok(())
        }
        (None, _) if host.routes.len() >= MAX_ROUTES => answers("No buffer space available"),
        (None, _) => {
            host.routes.push(route);
            Ok(())
        }
    }
}

pub(super) fn show(
    shim: &mut ToolShim<'_>,
    to: Option<(IpAddr, u8)>,
    (dev, scope_link): (Option<&str>, Option<bool>),
    flags: &IpFlags,
) -> Reply {
    let ipv6 = flags.family == Some(true);
    let routes = shim.machine.host.all_routes(&shim.machine.gateway);
    let wanted = routes.into_iter().filter(|route| {
        route.to.0.is_ipv6() == ipv6
            && to.is_none_or(|to| to == route.to)
            && dev.is_none_or(|dev| route.dev.as_deref() == Some(dev))
            && scope_link.is_none_or(|link| route.scope_link == link)
    });
    if flags.json {
        let object = |route: Route| {
            let (network, prefix) = route.to;
            let to = if prefix == 0 { "default".to_owned() } else { format!("{network}/{prefix}") };
            let mut object = serde_json::json!({ "dst": to, "flags": [] });
            for (key, value) in [("gateway", route.via), ("prefsrc", route.src)] {
                if let Some(value) = value {
                    object[key] = value.to_string().into();
                }
            }
            object["dev"] = route.dev.into();
            object
        };
        let list: Vec<_> = wanted.map(object).collect();
        return Reply::text(format!("{}\n", serde_json::Value::from(list)));
    }
    // With `dev X` ip leaves the device out of each line.
    // Nor the scope that was asked for.
    let line = |route: Route| {
        let text = route_text(&Route { dev: route.dev.filter(|_| dev.is_none()), ..route });
        if scope_link.is_some() { text.replace(" scope link", "") } else { text }
    };
    Reply::text(wanted.map(line).collect::<String>())
}

pub(super) fn get(shim: &mut ToolShim<'_>, address: IpAddr, flags: &IpFlags) -> Reply {
    let ending = if flags.oneline { "\\    " } else { "\n    " };
    if address.is_loopback() {
        return Reply::text(format!("local {address} dev lo src {address} uid 0 {ending}cache <local> \n"));
    }
    let (host, gateway) = (&shim.machine.host, &shim.machine.gateway);
    let Some(route) = host.route_to(gateway, address) else {
        return Reply::error(2, "RTNETLINK answers: Network is unreachable\n");
    };
    let dev = route.dev.unwrap_or_default();
    let own = gateway.device(&dev).map(|id| gateway.addresses(id)).unwrap_or_default();
    let own = own.iter().map(|(own, _)| *own).find(|own| own.is_ipv4() == address.is_ipv4());
    let mut text = address.to_string();
    if let Some(via) = route.via {
        text.push_str(&format!(" via {via}"));
    }
    text.push_str(&format!(" dev {dev}"));
    if let Some(src) = route.src.or(own) {
        text.push_str(&format!(" src {src}"));
    }
    Reply::text(format!("{text} uid 0 {ending}cache \n"))
}

pub(super) fn tunnels(shim: &mut ToolShim<'_>, name: Option<&str>) -> Reply {
    let mut out = String::new();
    for (link, tunnel) in shim.machine.host.links.iter().filter_map(|(link, state)| match &state.kind {
        LinkDriver::Tunnel(tunnel) if name.is_none_or(|name| name == link) => Some((link, tunnel)),
        _ => None,
    }) {
        let end =
            |address: IpAddr| if address.is_unspecified() { "any".to_owned() } else { address.to_string() };
        let mode = match tunnel.mode {
            TunnelMode::Ipip => "ip/ip",
            TunnelMode::Sit => "ipv6/ip",
            TunnelMode::Gre | TunnelMode::Gretap => "gre/ip",
            TunnelMode::Ip6tnl => "any/ipv6",
        };
        let ttl = if tunnel.ttl == 0 { "inherit".to_owned() } else { tunnel.ttl.to_string() };
        out.push_str(&format!(
            "{link}: {mode} remote {} local {} ttl {ttl}\n",
            end(tunnel.remote),
            end(tunnel.local)
        ));
    }
    match name.filter(|_| out.is_empty()) {
        Some(name) => Reply::error(1, format!("get tunnel \"{name}\" failed: No such device\n")),
        None => Reply::text(out),
    }
}
