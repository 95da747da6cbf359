/* A small LZ77 compressor: `lz c < in > out` packs, `lz d < in > out` unpacks, `lz t` tests itself.

   The packed form is a sequence of tokens. A byte below 0x80 announces that many plus one literal
   bytes; one from 0x80 on a match of (byte & 0x7f) + MIN_MATCH bytes, whose distance minus one
   follows in two bytes, the low one first. Four bytes at the start hold the unpacked size. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_MATCH = 4, MAX_MATCH = 0x7f + MIN_MATCH, WINDOW = 1 << 16, TABLE_BITS = 13, CHAIN = 32 };

struct buffer {
    uint8_t *data;
    size_t size, room;
};

struct finder {
    int32_t head[1 << TABLE_BITS];
    int32_t before[WINDOW];
};

static void fail(const char *what)
{
    fprintf(stderr, "lz: %s\n", what);
    exit(1);
}

static void reserve(struct buffer *buffer, size_t more)
{
    if (buffer->size + more <= buffer->room)
        return;
    while (buffer->size + more > buffer->room)
        buffer->room = buffer->room ? 2 * buffer->room : 256;
    buffer->data = realloc(buffer->data, buffer->room);
    if (!buffer->data)
        fail("out of memory");
}

static void put(struct buffer *buffer, uint8_t byte)
{
    reserve(buffer, 1);
    buffer->data[buffer->size++] = byte;
}

static void put_all(struct buffer *buffer, const uint8_t *data, size_t size)
{
    reserve(buffer, size);
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

static uint32_t hash(const uint8_t *p)
{
    uint32_t word = p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
    return word * 2654435761u >> (32 - TABLE_BITS);
}

static void remember(struct finder *finder, const uint8_t *data, size_t place)
{
    uint32_t slot = hash(data + place);
    finder->before[place % WINDOW] = finder->head[slot];
    finder->head[slot] = (int32_t)place;
}

static size_t common(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t length = 0;
    while (length < limit && a[length] == b[length])
        length++;
    return length;
}

static size_t longest(struct finder *finder, const struct buffer *in, size_t place, size_t *distance)
{
    size_t best = 0, limit = in->size - place;
    int32_t earlier = finder->head[hash(in->data + place)];
    if (limit > MAX_MATCH)
        limit = MAX_MATCH;
    for (int tries = CHAIN; tries && earlier >= 0 && place - earlier <= WINDOW - 1; tries--) {
        size_t length = common(in->data + earlier, in->data + place, limit);
        if (length > best) {
            best = length;
            *distance = place - earlier;
        }
        int32_t next = finder->before[earlier % WINDOW];
        if (next >= earlier)
            break;
        earlier = next;
    }
    return best;
}

static void put_literals(struct buffer *out, const uint8_t *data, size_t size)
{
    while (size) {
        size_t part = size > 0x80 ? 0x80 : size;
        put(out, (uint8_t)(part - 1));
        put_all(out, data, part);
        data += part;
        size -= part;
    }
}

static void pack(const struct buffer *in, struct buffer *out)
{
    struct finder *finder = malloc(sizeof *finder);
    size_t place = 0, waiting = 0;
    if (!finder)
        fail("out of memory");
    memset(finder, 0xff, sizeof *finder);
    for (int shift = 0; shift < 32; shift += 8)
        put(out, (uint8_t)(in->size >> shift));
    while (place < in->size) {
        size_t distance = 0, length = 0;
        if (in->size - place >= MIN_MATCH)
            length = longest(finder, in, place, &distance);
        if (length < MIN_MATCH)
            length = 1;
        else {
            put_literals(out, in->data + waiting, place - waiting);
            put(out, (uint8_t)(0x80 | (length - MIN_MATCH)));
            put(out, (uint8_t)(distance - 1));
            put(out, (uint8_t)((distance - 1) >> 8));
            waiting = place + length;
        }
        for (; length; length--, place++)
            if (in->size - place >= MIN_MATCH)
                remember(finder, in->data, place);
    }
    put_literals(out, in->data + waiting, place - waiting);
    free(finder);
}

static void unpack(const struct buffer *in, struct buffer *out)
{
    const uint8_t *p = in->data, *end = p + in->size;
    uint32_t size = 0;
    if (in->size < 4)
        fail("too short");
    for (int shift = 0; shift < 32; shift += 8)
        size |= (uint32_t)*p++ << shift;
    while (p < end) {
        uint8_t token = *p++;
        if (token < 0x80) {
            if (end - p < token + 1)
                fail("broken literals");
            put_all(out, p, token + 1u);
            p += token + 1;
            continue;
        }
        if (end - p < 2)
            fail("broken match");
        size_t distance = (p[0] | p[1] << 8) + 1u;
        p += 2;
        if (distance > out->size)
            fail("broken distance");
        for (int length = (token & 0x7f) + MIN_MATCH; length; length--)
            put(out, out->data[out->size - distance]);
    }
    if (out->size != size)
        fail("wrong size");
}

static void load(struct buffer *buffer)
{
    int byte;
    while ((byte = getchar()) != EOF)
        put(buffer, (uint8_t)byte);
}

static int test(void)
{
    uint32_t state = 1;
    for (int round = 0; round < 40; round++) {
        struct buffer plain = {0}, packed = {0}, again = {0};
        for (int k = 0; k < 50 * round; k++) {
            state = state * 1664525u + 1013904223u;
            put(&plain, round % 4 ? (uint8_t)("abracadabra"[(state >> 24) % (3 + round % 8)])
                                  : (uint8_t)(state >> 24));
        }
        pack(&plain, &packed);
        unpack(&packed, &again);
        if (again.size != plain.size || (plain.size && memcmp(again.data, plain.data, plain.size)))
            fail("test failed");
        free(plain.data);
        free(packed.data);
        free(again.data);
    }
    return puts("ok") < 0;
}

int main(int count, char **arguments)
{
    struct buffer in = {0}, out = {0};
    char what = count == 2 ? arguments[1][0] : 0;
    if (what == 't')
        return test();
    if (what != 'c' && what != 'd')
        fail("usage: lz c|d|t");
    load(&in);
    reserve(&out, 1); /* no null pointer, even if nothing comes out */
    (what == 'c' ? pack : unpack)(&in, &out);
    size_t written = fwrite(out.data, 1, out.size, stdout);
    free(in.data);
    free(out.data);
    return written != out.size;
}
