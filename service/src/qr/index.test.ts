import jsqr from 'jsqr'
import { PNG } from 'pngjs'
import { describe, expect, test } from 'vitest'
import { pngDataUri, renderQr } from './index.ts'
import { planQr, qrMatrix } from './matrix.ts'

/**
 * What: every image is read back to exactly the text it was made of, at every size.
 * How: jsQR reads PNGs unpacked by pngjs, and SVGs drawn here from their path. Masks differ between
 * libraries, so images are compared by what they say and never with stored ones.
 */
const evm = '0x52908400098527886E0F7030069857D2E4169EE7'
const tokenContract = '0xdAC17F958D2ee523a2206206994597C13D831ec7'
const payloads = [
  'bitcoin:bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4?amount=0.05',
  'bitcoin:bcrt1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr?amount=0.12345678',
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2',
  `ethereum:${evm}?amount=150.123456`,
  `bnb:${evm}?amount=0.02`,
  evm,
  `ethereum:${evm}@56?value=1500000000000000001`,
  `ethereum:${tokenContract}@1/transfer?address=${evm}&uint256=123456789012345678901234`,
  'solana:7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV?amount=1.5',
  'tron:TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC?amount=12',
  'ripple:XVfC9CTCJh6GN2x8bnrw3LtdbqiVCUFyQVMzRrMGUZpokKH?amount=25.5',
  'stellar:MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ?amount=3',
  'eos:cambist12345?amount=4.0001',
]

type Image = { width: number; height: number; data: Uint8Array }

function read({ data, width, height }: Image): string | undefined {
  const found = jsqr.default(new Uint8ClampedArray(data), width, height, { inversionAttempts: 'dontInvert' })
  return found?.data
}

function png(text: string, size: number): Buffer {
  const rendered = renderQr({ text, size, format: 'png' })
  if (!rendered.ok) throw new Error(rendered.rejection.message)
  return rendered.value
}

function svg(text: string, size: number): string {
  const rendered = renderQr({ text, size, format: 'svg' })
  if (!rendered.ok) throw new Error(rendered.rejection.message)
  return rendered.value
}

/** Draws the path of bars at `scale` pixels a unit, as a renderer with crisp edges does. */
function rasterise(image: string, scale: number): Image {
  const side = Number(/viewBox="0 0 (\d+) \1"/.exec(image)?.[1])
  const paths = [...image.matchAll(/<path (?:fill="([^"]*)" )?d="([^"]*)"/g)]
  expect(paths.map(([, fill]) => fill)).toEqual(['#fff', undefined])
  const path = paths[1]?.[2] ?? ''
  const bars = [...path.matchAll(/M(\d+) (\d+)h(\d+)v1h-(\d+)z/g)]
  expect(bars.map(([bar]) => bar).join(''), 'the path is bars and nothing else').toBe(path)
  const width = side * scale
  const data = new Uint8Array(width * width * 4).fill(255)
  for (const [, x, y, length, back] of bars) {
    expect(back).toBe(length)
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row += 1) {
      for (let column = Number(x) * scale; column < (Number(x) + Number(length)) * scale; column += 1) {
        data.fill(0, (row * width + column) * 4, (row * width + column) * 4 + 3)
      }
    }
  }
  return { width, height: width, data }
}

describe.each(payloads)('%s', (text) => {
  test.each([128, 177, 200, 256, 511, 1024])('is read from a PNG of %i px', (size) => {
    const image = PNG.sync.read(png(text, size))
    expect([image.width, image.height]).toEqual([size, size])
    expect(read(image)).toBe(text)
  })

  test('is read from an SVG', () => {
    const image = svg(text, 300)
    expect(image).toMatch(/^<svg [^>]*width="300" height="300"[^>]*shape-rendering="crispEdges">/)
    expect(read(rasterise(image, 4))).toBe(text)
  })
})

test('every size from 64 to 1024 gives an image of that size which is the matrix, whole pixels, in a light margin', () => {
  const text = payloads[0] ?? ''
  const plan = planQr(text)
  if (plan === null) throw new Error('it fits')
  const modules = qrMatrix(text, plan)
  for (let size = 64; size <= 1024; size += size < 300 ? 1 : 37) {
    const image = PNG.sync.read(png(text, size))
    const scale = Math.floor(size / modules.length)
    const margin = (size - modules.length * scale) >> 1
    let wrong = 0
    for (let y = 0; y < size; y += 1) {
      const row = modules[Math.floor((y - margin) / scale)]
      for (let x = 0; x < size; x += 1) {
        const isDark = row?.[Math.floor((x - margin) / scale)] ?? false
        if (image.data[(y * size + x) * 4] !== (isDark ? 0 : 255)) wrong += 1
      }
    }
    expect([image.width, image.height, wrong], `${size} px`).toEqual([size, size, 0])
  }
  expect(PNG.sync.read(png(text, 1024)).width).toBe(1024)
})

test('every size of every fourth pixel is read', () => {
  const text = payloads[4] ?? ''
  for (let size = 64; size <= 1024; size += size < 256 ? 4 : 61) {
    expect(read(PNG.sync.read(png(text, size))), `${size} px`).toBe(text)
  }
})

test('four light modules surround the symbol in both formats', () => {
  for (const text of payloads) {
    const plan = planQr(text)
    if (plan === null) throw new Error('it fits')
    const modules = qrMatrix(text, plan)
    const edge = [0, 1, 2, 3].flatMap((index) => [index, modules.length - 1 - index])
    for (const index of edge) {
      expect(modules[index]?.some(Boolean)).toBe(false)
      expect(modules.some((row) => row[index])).toBe(false)
    }
    expect(modules[4]?.[4], 'the finder begins where the quiet zone ends').toBe(true)
    expect(modules).toHaveLength(17 + 4 * plan.version + 8)
  }
})

test('the largest symbols are read too', () => {
  const text = 'a'.repeat(2953)
  expect(read(PNG.sync.read(png(text, 1024)))).toBe(text)
})

test('an image in which a module would be less than a pixel is refused with the size it needs', () => {
  const text = 'a'.repeat(300)
  for (const format of ['png', 'svg'] as const) {
    const refused = renderQr({ text, size: 64, format })
    expect(refused).toMatchObject({ ok: false, rejection: { code: 'qr_too_dense' } })
    const sizeMin = Number(/\d+/.exec(refused.ok ? '' : refused.rejection.message)?.[0])
    expect(renderQr({ text, size: sizeMin - 1, format }).ok).toBe(false)
    expect(renderQr({ text, size: sizeMin, format }).ok).toBe(true)
  }
})

test('text beyond every symbol is refused', () => {
  expect(renderQr({ text: 'a'.repeat(2954), size: 1024, format: 'png' })).toMatchObject({
    ok: false,
    rejection: { code: 'qr_text_too_long' },
  })
})

test.each([63, 1025, 0, -1, 100.5, Number.NaN, Number.POSITIVE_INFINITY])(
  'a size of %s is refused',
  (size) => {
    for (const format of ['png', 'svg'] as const) {
      expect(renderQr({ text: 'a', size, format })).toMatchObject({
        ok: false,
        rejection: { code: 'qr_size_out_of_range' },
      })
    }
  },
)

test('the data URI carries the PNG', () => {
  const image = png('a', 64)
  const uri = pngDataUri(image)
  expect(uri.startsWith('data:image/png;base64,')).toBe(true)
  expect(Buffer.from(uri.slice('data:image/png;base64,'.length), 'base64')).toEqual(image)
})
