import type { FastifyReply, FastifyRequest } from 'fastify'

/** Resolves once nothing of the answer is kept in memory any more: all of it is with the kernel, or its connection has gone. */
export function whenTaken({ raw: { socket } }: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  if (raw.writableFinished || raw.destroyed || socket.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      raw.off('finish', end)
      raw.off('close', end)
      socket.off('close', end)
      resolve()
    }
    raw.once('finish', end)
    raw.once('close', end)
    // One that waits behind others on its connection is not always closed with it.
    socket.once('close', end)
  })
}
