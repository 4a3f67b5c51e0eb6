/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other side of test_remote_memory.py, in C on libfabric, as docs/how-to/talk-to-libfabric-programs.md has it.
 *
 * remote_memory PROVIDER own                                 registers memory, says how to reach it, serves until its
 *                                                            input ends, then says what is in it
 * remote_memory PROVIDER use NAME KEY ADDRESS LENGTH TEXT    reads the memory that these name, writes TEXT into it
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define CHECK(call) check((int)(call), #call)

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_mr *mr;
static char memory[64] = "from the program in C";

static void check(int result, const char *call)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", call, fi_strerror(-result));
        exit(1);
    }
}

static void open_endpoint(const char *provider)
{
    struct fi_info *hints = fi_allocinfo();

    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->name = strdup("lo");
    hints->fabric_attr->prov_name = strdup(provider);
    CHECK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
    fi_freeinfo(hints);
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK(fi_domain(fabric, info, &domain, NULL));
    CHECK(fi_endpoint(domain, info, &ep, NULL));
    CHECK(fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_CONTEXT}, &cq, NULL));
    CHECK(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL));
    CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK(fi_ep_bind(ep, &av->fid, 0));
    CHECK(fi_enable(ep));
    CHECK(fi_mr_reg(domain, memory, sizeof memory, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0xC0FFEE,
                    0, &mr, NULL));
}

/* What the other side has to be told: the endpoint's name, and key, address and length of the memory. */
static void tell(void)
{
    unsigned char name[64];
    size_t length = sizeof name;
    uint64_t address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;

    CHECK(fi_getname(&ep->fid, name, &length));
    for (size_t i = 0; i < length; i++)
        printf("%02x", name[i]);
    printf(" %llu %llu %zu\n", (unsigned long long)fi_mr_key(mr), (unsigned long long)address, sizeof memory);
    fflush(stdout);
}

static void serve(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct fi_cq_entry entry;

    while (poll(&input, 1, 1) == 0)
        fi_cq_read(cq, &entry, 1); /* makes progress */
    printf("%s\n", memory);
}

static void finish(const char *what)
{
    struct fi_cq_entry entry;
    ssize_t count;

    do
        count = fi_cq_read(cq, &entry, 1);
    while (count == -FI_EAGAIN);
    check((int)count, what);
}

static void use(char **argument)
{
    unsigned char name[64];
    size_t count = 0;
    fi_addr_t peer;

    for (const char *at = argument[0]; at[0] && at[1]; at += 2)
        sscanf(at, "%2hhx", &name[count++]);
    uint64_t key = strtoull(argument[1], NULL, 0), address = strtoull(argument[2], NULL, 0);
    size_t length = strtoull(argument[3], NULL, 0), text = strlen(argument[4]) + 1;

    if (fi_av_insert(av, name, 1, &peer, 0, NULL) != 1)
        check(-FI_EINVAL, "fi_av_insert");
    while (fi_read(ep, memory, length, fi_mr_desc(mr), peer, address, key, NULL) == -FI_EAGAIN)
        fi_cq_read(cq, NULL, 0);
    finish("read");
    printf("%s\n", memory);
    memcpy(memory, argument[4], text);
    while (fi_write(ep, memory, text, fi_mr_desc(mr), peer, address, key, NULL) == -FI_EAGAIN)
        fi_cq_read(cq, NULL, 0);
    finish("write");
}

int main(int count, char **arguments)
{
    if (count != 3 && count != 8)
        return 2;
    open_endpoint(arguments[1]);
    if (count == 3) {
        tell();
        serve();
    } else {
        use(arguments + 3);
    }
    fi_close(&mr->fid);
    fi_close(&ep->fid);
    fi_close(&av->fid);
    fi_close(&cq->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(info);
    return 0;
}
