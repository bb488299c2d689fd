import { Histogram, type Registry } from 'prom-client'

/** Seconds from the first byte read to the answer handed over, by route and status. */
export type RequestMeter = { observe(method: string, route: string, status: number, seconds: number): void }

type Child = { observe(seconds: number): void }

export function requestMeter(registry: Registry): RequestMeter {
  const histogram = new Histogram({
    name: 'cambist_http_request_duration_seconds',
    help: 'Time from the arrival of a request to its answer, by method, route and status.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  const children = new Map<string, Child>()
  return {
    observe(method, route, status, seconds) {
      const key = `${method} ${route} ${status}`
      let child = children.get(key)
      if (child === undefined) {
        child = histogram.labels(method, route, String(status))
        children.set(key, child)
      }
      child.observe(seconds)
    },
  }
}
