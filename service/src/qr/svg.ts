import { forEachRun, type QrMatrix } from './matrix.ts'

/** One path in module coordinates, one bar for each horizontal run of dark modules. */
export function svgOf(matrix: QrMatrix, sizePx: number): string {
  const side = matrix.length
  let path = ''
  matrix.forEach((row, y) => {
    forEachRun(row, (from, length) => {
      path += `M${from} ${y}h${length}v1h-${length}z`
    })
  })
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${sizePx}" height="${sizePx}" viewBox="0 0 ${side} ${side}"` +
    ` shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${side}v${side}H0z"/><path d="${path}"/></svg>`
  )
}
