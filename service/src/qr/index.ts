import { accept, type Outcome, refuse } from '../domain/outcome.ts'
import { planQr, qrMatrix } from './matrix.ts'
import { pngOf } from './png.ts'
import { svgOf } from './svg.ts'

export { type PaymentStyle, paymentUri, schemeOf } from './payload.ts'

export const QR_SIZE_MIN_PX = 64
export const QR_SIZE_MAX_PX = 1024

export type QrRequest = {
  readonly text: string
  /** Width and height in pixels, 64 … 1024. */
  readonly size: number
}

export type QrRejection = {
  readonly code:
    | 'qr_size_out_of_range'
    | 'qr_text_too_long' // no QR symbol carries it
    | 'qr_too_dense' // less than one pixel a module: nothing could read it
  readonly message: string
}

/** What the image shows is exactly `text`; a PNG is exactly `size` pixels wide and high. */
export function renderQr(request: QrRequest & { readonly format: 'png' }): Outcome<Buffer, QrRejection>
export function renderQr(request: QrRequest & { readonly format: 'svg' }): Outcome<string, QrRejection>
export function renderQr(
  request: QrRequest & { readonly format: 'png' | 'svg' },
): Outcome<Buffer | string, QrRejection>
export function renderQr({
  text,
  size,
  format,
}: QrRequest & { readonly format: 'png' | 'svg' }): Outcome<Buffer | string, QrRejection> {
  if (!Number.isInteger(size) || size < QR_SIZE_MIN_PX || size > QR_SIZE_MAX_PX) {
    const message = `must be a whole number from ${QR_SIZE_MIN_PX} to ${QR_SIZE_MAX_PX}`
    return refuse({ code: 'qr_size_out_of_range', message })
  }
  const plan = planQr(text)
  if (plan === null) {
    return refuse({ code: 'qr_text_too_long', message: 'is more than a QR code can carry' })
  }
  const matrix = qrMatrix(text, plan)
  // The same limit for both formats: an SVG this size would be as unreadable on the screen.
  if (matrix.length > size) {
    return refuse({ code: 'qr_too_dense', message: `must be at least ${matrix.length} for this content` })
  }
  return accept(format === 'png' ? pngOf(matrix, size) : svgOf(matrix, size))
}

export function pngDataUri(png: Buffer): string {
  return `data:image/png;base64,${png.toString('base64')}`
}
