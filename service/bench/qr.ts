import { renderQr } from '../src/qr/index.ts'
import { tell } from './figure.ts'
import { inTurns, microsecondsEach, type Work } from './in_turns.ts'

/**
 * CPU time of one QR image, ours against the `qrcode` package, as a ratio from one interleaved run: the two
 * take turns in short slices, so a busy machine slows both alike.
 */
const SLICE_US = 200_000
const IMAGES_A_LOOK = 4
const formats = [
  { name: 'PNG, 256 px', format: 'png', size: 256, atLeast: 50 },
  { name: 'PNG, 1024 px', format: 'png', size: 1024, atLeast: 100 },
  { name: 'SVG, 256 px', format: 'svg', size: 256, atLeast: null },
] as const

/** Draws for a slice of time, every image another text: an order's image is rarely drawn twice in a row. */
function drawing(draw: (text: string) => unknown): () => Promise<Work> {
  let drawn = 0
  return async () => {
    const first = drawn
    const startedMs = performance.now()
    const before = process.cpuUsage()
    let cpuMicroseconds = 0
    while (cpuMicroseconds < SLICE_US) {
      // Looking at the clock costs too: not after every image.
      for (let image = 0; image < IMAGES_A_LOOK; image += 1) {
        await draw(`ethereum:0x52908400098527886E0F7030069857D2E4169EE7?amount=${drawn + 1}.123456`)
        drawn += 1
      }
      const { user, system } = process.cpuUsage(before)
      cpuMicroseconds = user + system
    }
    return { count: drawn - first, cpuMicroseconds, seconds: (performance.now() - startedMs) / 1000 }
  }
}

type ReferenceLibrary = {
  toBuffer(text: string, options: { width: number; errorCorrectionLevel: 'M' }): Promise<Buffer>
  toString(text: string, options: { type: 'svg'; width: number; errorCorrectionLevel: 'M' }): Promise<string>
}

// It ships no types.
const packageName = 'qrcode'
const { default: reference }: { default: ReferenceLibrary } = await import(packageName)

for (const { name, format, size, atLeast } of formats) {
  const options = { width: size, errorCorrectionLevel: 'M' } as const
  const { ours, theirs } = await inTurns({
    ours: drawing((text) => renderQr({ text, size, format })),
    theirs: drawing((text) =>
      format === 'png'
        ? reference.toBuffer(text, options)
        : reference.toString(text, { ...options, type: 'svg' }),
    ),
  })
  tell({
    name: `QR ${name}`,
    value: microsecondsEach(theirs) / microsecondsEach(ours),
    unit: 'times as fast as the package qrcode',
    ...(atLeast !== null && { limit: { atLeast } }),
    detail: `${microsecondsEach(ours).toFixed(1)} µs of processor an image, theirs ${microsecondsEach(theirs).toFixed(1)} µs`,
  })
}
