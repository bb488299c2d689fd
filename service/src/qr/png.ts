import { crc32, deflateSync } from 'node:zlib'
import { assert } from '../domain/assert.ts'
import { forEachRun, type QrMatrix } from './matrix.ts'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const END = chunk('IEND', Buffer.alloc(0))

const FILTER_NONE = 0
const FILTER_UP = 2
const LIGHT = 0xff

/**
 * Bars of equal pixels pack well at the cheapest level; run-length strategy measured no faster and larger.
 * The result is a few kilobytes: the default buffer of 16 kB for each image would be mostly waste.
 */
const COMPRESSION = { level: 1, chunkSize: 4096 }

/**
 * A 1-bit greyscale PNG of exactly `sizePx` by `sizePx`: whole pixels per module, the rest is margin.
 * Source: https://www.w3.org/TR/png-3/.
 */
export function pngOf(matrix: QrMatrix, sizePx: number): Buffer {
  const scale = Math.floor(sizePx / matrix.length)
  assert(scale >= 1, `${matrix.length} modules fit into ${sizePx} px`)
  const pixels = deflateSync(scanlines(matrix, sizePx, scale), COMPRESSION)
  return Buffer.concat([SIGNATURE, header(sizePx), chunk('IDAT', pixels), END])
}

/** A row of modules is drawn once; its repetitions say "as above", which is all zeros and packs to nothing. */
function scanlines(matrix: QrMatrix, sizePx: number, scale: number): Buffer {
  const lineBytes = 1 + ((sizePx + 7) >> 3)
  const lines = Buffer.alloc(lineBytes * sizePx)
  const margin = (sizePx - matrix.length * scale) >> 1
  const drawLine = (y: number, row: readonly boolean[]) => {
    const start = y * lineBytes
    lines[start] = FILTER_NONE
    lines.fill(LIGHT, start + 1, start + lineBytes)
    forEachRun(row, (from, length) => {
      darken(lines, (start + 1) * 8 + margin + from * scale, length * scale)
    })
  }
  const repeatLines = (from: number, to: number) => {
    for (let y = from; y < to; y += 1) lines[y * lineBytes] = FILTER_UP
  }
  drawLine(0, [])
  repeatLines(1, margin)
  matrix.forEach((row, index) => {
    const y = margin + index * scale
    drawLine(y, row)
    repeatLines(y + 1, y + scale)
  })
  const below = margin + matrix.length * scale
  if (below < sizePx) drawLine(below, [])
  repeatLines(below + 1, sizePx)
  return lines
}

/** Clears `length` bits from `from` on, counted from the buffer's first, most significant bit. */
function darken(bytes: Buffer, from: number, length: number): void {
  const to = from + length
  const first = from >> 3
  const last = to >> 3
  const keepBefore = ~(LIGHT >> (from & 7))
  const keepAfter = LIGHT >> (to & 7)
  if (first === last) {
    bytes[first] = (bytes[first] ?? 0) & (keepBefore | keepAfter)
    return
  }
  bytes[first] = (bytes[first] ?? 0) & keepBefore
  // A loop, not `fill`: runs are a few bytes, and the call would cost more than the work.
  for (let index = first + 1; index < last; index += 1) bytes[index] = 0
  // A run that ends with a byte ends here: the next byte may belong to the next line's filter.
  if (keepAfter !== LIGHT) bytes[last] = (bytes[last] ?? 0) & keepAfter
}

function header(sizePx: number): Buffer {
  const data = Buffer.alloc(13)
  data.writeUInt32BE(sizePx, 0)
  data.writeUInt32BE(sizePx, 4)
  data[8] = 1 // bit depth; colour type, compression, filter and interlace stay 0
  return chunk('IHDR', data)
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, 'latin1')
  data.copy(bytes, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length)
  return bytes
}
