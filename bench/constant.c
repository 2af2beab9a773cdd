// The limit of one core: answers every request with the same bytes, and parses nothing but its empty line.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 65536, AT_ONCE = 256 };

static char answer[1 << 20], received[BUFFER];

// Arguments: the port of 127.0.0.1, and the file with the whole answer.
int main(int count, char **arguments) {
    if (count != 3) return 2;
    FILE *file = fopen(arguments[2], "rb");
    if (!file) return 2;
    size_t length = fread(answer, 1, sizeof answer, file);
    fclose(file);

    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return 1;

    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[AT_ONCE];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poll, events, AT_ONCE, -1);
        for (int number = 0; number < ready; number++) {
            int connection = events[number].data.fd;
            if (connection == listener) {
                connection = accept(listener, NULL, NULL);
                setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                event.data.fd = connection;
                epoll_ctl(poll, EPOLL_CTL_ADD, connection, &event);
                continue;
            }
            ssize_t came = read(connection, received, BUFFER);
            if (came <= 0) {
                close(connection);
            } else if (came >= 4 && !memcmp(received + came - 4, "\r\n\r\n", 4)) {
                if (write(connection, answer, length) < 0) close(connection);
            }
        }
    }
}
