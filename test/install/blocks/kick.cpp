// SPDX-License-Identifier: BSD-3-Clause
// Role: the further blocks of docs/tutorials/kick.md, line by line, in a program whose answers are
// checked.
#include "hiroba/kick.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace hiroba;

// Lines as on the page.
// clang-format off
int main() {
    std::string why;
    const auto network = net::Network::open(&why);
    const auto board = kick::Board::make(*network, &why);
    const unsigned self = board->self().value, nodes = board->nodes();
    const NodeId next{(self + 1) % nodes}, before{(self + nodes - 1) % nodes};
    int wrong = 0;

const auto ring = board->window(464, next, before);   // before connect(): to whom, and from whom
    std::vector<std::unique_ptr<kick::Window>> four;
    {
std::vector<std::unique_ptr<kick::Window>> ring(4);
for (auto& window : ring) window = board->window(464, next, before);   // before connect()
        four = std::move(ring);
    }
auto items = board->channel<float>(next, before);     // before connect()
const auto barrier = board->barrier();                // before connect(), and so are the others
auto total = board->all_reduce<double>();
auto chosen = board->broadcast<long>();
const auto from = network->allocate(4096), to = network->allocate(4096);   // before connect()
const auto offset = board->reserve(sizeof(unsigned));
    board->expose(*to);
    if (!network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 1;

    const char* data = "block";
    std::size_t bytes = 6;
ring->await_room();                                   // the receiver took the last one
std::memcpy(ring->payload().data(), data, bytes);     // composed in place
ring->send(bytes);
const auto came = ring->receive();                    // until take()
    wrong += came.size() != bytes || std::memcmp(came.data(), data, bytes) != 0;
ring->take();                                         // now its sender may write again

    {
        const auto& ring = four;
        const unsigned blocks = 1000;
        unsigned filled = 0, used = 0;
        bytes = 464;
        const auto fill = [&](std::span<std::byte> into) {
            ++filled;
            std::memcpy(into.data(), &filled, sizeof filled);
        };
        const auto use = [&](std::span<const std::byte> block) {
            unsigned number = 0;
            std::memcpy(&number, block.data(), sizeof number);
            wrong += number != ++used || block.size() != bytes;
        };
unsigned sent = 0, got = 0;                           // blocks; each window is used in turn
const auto may_send = [&] { return sent < blocks && ring[sent % 4]->may_overwrite(); };
const auto may_take = [&] { return got < blocks && ring[got % 4]->arrived(); };
while (sent < blocks || got < blocks) {
    if (may_send()) fill(ring[sent % 4]->payload()), ring[sent++ % 4]->send(bytes);
    if (may_take()) use(ring[got % 4]->receive()), ring[got++ % 4]->take();
    if (sent == blocks && got == blocks) break;
    board->wait_for([&] { return may_send() || may_take(); });   // polls, and sleeps in the end
}
    }

items->stream(1.5f); items->stream(2.5f); items->flush();
const float first = items->receive();
    std::optional<float> item;
    board->wait_for([&] { if (!item) item = items->try_receive(); return item.has_value(); });
    wrong += first != 1.5f || *item != 2.5f;

    const double mine = self;
    {
barrier->arrive(); /* work that needs no other node */ barrier->wait();
const double most = (*total)(mine, [](double a, double b) { return std::max(a, b); });
        wrong += most != nodes - 1;
    }
    {
        const long mine = 100 + self;
const long value = (*chosen)(mine, 0);                // node 0's
        wrong += value != 100;
    }
    const std::uint64_t timeout_ns = 1'000'000;
    barrier->arrive();
    while (!network->wait_until([&] { return barrier->passed(); }, timeout_ns)) {}

auto to_next = board->kick<unsigned>(next, *offset);  // after it; outlives `flag`
kick::KickAfter<unsigned> flag{*to_next};             // of one write at a time
const unsigned in_page = *offset % kick::page_bytes;
    for (unsigned round = 1; round <= 50; ++round) {
        std::memset(network->local(*from).data(), static_cast<int>(round + self), 4000);
network->insist([&] {                                 // a write that finds `again` is repeated
    return network->try_write_async({next, {*from, 0}, {*to, 0}, 4000, flag.callback(in_page, round)});
});
board->wait_until<unsigned>(*offset, [&](unsigned came) { return came == round; });   // at `next`
        wrong += network->local(*to)[3999] != std::byte(round + before.value);
network->wait_until([&] { return flag.over(); });     // before `flag` is used again
        network->barrier();
    }
    auto exposed = board->kick<unsigned>(next, net::RemoteAddress{*to, 0});
    exposed->store(8, 700 + self);
    board->wake(next);
    const auto* const word = reinterpret_cast<const volatile unsigned*>(network->local(*to).data() + 8);
    board->wait_for([&] { return *word == 700 + before.value; });
    network->barrier();
    std::puts(wrong == 0 ? "right" : "WRONG");
}
