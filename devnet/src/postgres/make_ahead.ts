import { randomBytes } from 'node:crypto'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { clusterFolder, scratchFolder, serverUser } from './cluster_place.ts'
import { copyCluster, makeEmptyCluster, templatePath } from './make_cluster.ts'
import { startPostgres } from './start_postgres.ts'

/** What a cluster has beyond what an empty one has. The name changes with it: what was made under it is never made again. */
export type Filling = { readonly name: string; fill(url: string): Promise<void> }

/**
 * Makes an empty cluster in the cache of this machine, and one with each filling, unless they are there. Every other begins as a
 * copy of one of them, which takes a sixth of the time.
 */
export async function makeClusterTemplates(...fillings: readonly Filling[]): Promise<void> {
  const user = serverUser()
  await make(templatePath(), async (scratch) => {
    const cluster = join(scratch, 'cluster')
    await makeEmptyCluster(cluster, user)
    return cluster
  })
  for (const { name, fill } of fillings) {
    await make(templatePath(name), async (dataDir) => {
      const server = await startPostgres({ dataDir })
      try {
        await fill(server.url)
      } finally {
        await server.stop()
      }
      return clusterFolder(dataDir, user)
    })
  }
}

/** `work` answers where it has made it. The server's user may not come where the cache is. */
async function make(template: string, work: (scratch: string) => Promise<string>): Promise<void> {
  if (existsSync(template)) return
  const scratch = scratchFolder(serverUser())
  const draft = `${template}.${randomBytes(6).toString('hex')}`
  try {
    await copyCluster(await work(scratch), draft)
    renameSync(draft, template)
  } catch (error) {
    // Who installs at the same time was first: one is as good as the other.
    if (!existsSync(template)) throw error
  } finally {
    for (const folder of [scratch, draft]) rmSync(folder, { recursive: true, force: true })
  }
}
