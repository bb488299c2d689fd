import { renderQr } from '../src/qr/index.ts'

/**
 * CPU time of one QR image, ours against the `qrcode` package, as a ratio from one interleaved run: the two
 * take turns in short slices, so a busy machine slows both alike.
 */
type Contender = {
  readonly name: string
  readonly draw: (text: string) => unknown
  cpuUs: number
  images: number
}

const ROUNDS = 12
const SLICE_US = 200_000
const IMAGES_A_LOOK = 4
const formats = [
  { name: 'png 256', format: 'png', size: 256 },
  { name: 'png 1024', format: 'png', size: 1024 },
  { name: 'svg 256', format: 'svg', size: 256 },
] as const

/** Every image another text: an order's image is rarely drawn twice in a row. */
function textOf(index: number): string {
  return `ethereum:0x52908400098527886E0F7030069857D2E4169EE7?amount=${index + 1}.123456`
}

async function runSlice(contender: Contender): Promise<void> {
  const before = process.cpuUsage()
  let usedUs = 0
  while (usedUs < SLICE_US) {
    // Looking at the clock costs too: not after every image.
    for (let image = 0; image < IMAGES_A_LOOK; image += 1) {
      await contender.draw(textOf(contender.images))
      contender.images += 1
    }
    const { user, system } = process.cpuUsage(before)
    usedUs = user + system
  }
  contender.cpuUs += usedUs
}

function report(name: string, contender: Contender): number {
  const us = contender.cpuUs / contender.images
  console.log(`qr ${name.padEnd(9)} ${contender.name.padEnd(8)} ${us.toFixed(1).padStart(9)} µs CPU an image`)
  return us
}

type ReferenceLibrary = {
  toBuffer(text: string, options: { width: number; errorCorrectionLevel: 'M' }): Promise<Buffer>
  toString(text: string, options: { type: 'svg'; width: number; errorCorrectionLevel: 'M' }): Promise<string>
}

/** The reference may be absent: then only our own cost is printed, and said so. */
async function loadReference(): Promise<ReferenceLibrary | null> {
  const packageName = 'qrcode'
  try {
    const loaded: { default: ReferenceLibrary } = await import(packageName)
    return loaded.default
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

const reference = await loadReference()
if (reference === null) console.log('qr: the package qrcode is not installed; no ratio')
for (const { name, format, size } of formats) {
  const options = { width: size, errorCorrectionLevel: 'M' } as const
  const ours: Contender = {
    name: 'cambist',
    draw: (text) => renderQr({ text, size, format }),
    cpuUs: 0,
    images: 0,
  }
  const theirs: Contender | null = reference && {
    name: 'qrcode',
    draw: (text) =>
      format === 'png'
        ? reference.toBuffer(text, options)
        : reference.toString(text, { ...options, type: 'svg' }),
    cpuUs: 0,
    images: 0,
  }
  const contenders = theirs === null ? [ours] : [ours, theirs]
  for (const contender of contenders) await runSlice(contender)
  for (const contender of contenders) Object.assign(contender, { cpuUs: 0, images: 0 })
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const contender of contenders) await runSlice(contender)
  }
  const ourUs = report(name, ours)
  if (theirs !== null) console.log(`qr ${name} ratio ${(report(name, theirs) / ourUs).toFixed(1)}×`)
}
