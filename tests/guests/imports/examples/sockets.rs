//! Opens a socket of its own, past all rules on requests.

use contract::{Answer, Tool, text, tool};
use wasip2::sockets::network::IpAddressFamily;
use wasip2::sockets::{instance_network, tcp_create_socket};

struct Component;

impl contract::bindings::exports::fief::plugin::tools::Guest for Component {
    fn list_tools() -> Vec<Tool> {
        vec![tool("run")]
    }

    fn call_tool(_: String, _: String) -> Answer {
        let _network = instance_network::instance_network();
        let socket = tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4);
        text(format!("broke out: {}", socket.is_ok()))
    }
}

contract::bindings::export!(Component with_types_in contract::bindings);
