import { type Database, noLimits, openDatabase } from '../../src/db/database.ts'

/**
 * A database as the service sees it, without its limits in time: on a machine that is busy with other tests a process may stand still
 * between two statements for longer than the service bears with.
 */
export function openTestDatabase(url: string, name: string, connectionsMax = 5): Database {
  return openDatabase({
    url,
    connectionsMax,
    applicationName: name,
    onConnectionLost: () => {},
    limits: noLimits,
  })
}
