'use strict'
// Driver of kafkajs: one function an operation of DRIVERS.md. Started as `node driver.js BOOTSTRAP`
// with NODE_PATH naming the installed packages.

const readline = require('readline')
const {
  Kafka, Partitioners, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel, AssignerProtocol,
} = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')
const { version } = require('kafkajs/package.json')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer),
})
const zstd = new Promise(resolve => ZstdCodec.run(library => resolve(library)))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(new (await zstd).Simple().compress(new Uint8Array(encoder.buffer))),
  // Not Simple: it returns null for a frame that does not tell the size of its content.
  decompress: async buffer => Buffer.from(new (await zstd).Streaming().decompress(new Uint8Array(buffer))),
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const bootstrap = process.argv[2]
const { readFileSync } = require('fs')
// How to come in, where that takes TLS and a login; see DRIVERS.md.
const given = JSON.parse(process.env.KAFKALITE_COMPAT_SECURITY || '{}')
const security = {}
if (given.ca) {
  security.ssl = { ca: [readFileSync(given.ca, 'utf-8')] }
  if (given.identity) security.ssl.cert = security.ssl.key = readFileSync(given.identity, 'utf-8')
}
if (given.mechanism) {
  security.sasl = { mechanism: given.mechanism.toLowerCase(), username: given.user, password: given.password }
}
// The default of 300 ms before the first retry would be most of the suite's time.
const kafka = new Kafka({
  brokers: bootstrap.split(","),
  ...security,
  logLevel: logLevel.WARN,
  logCreator: () => entry => process.stderr.write(JSON.stringify(entry.log) + '\n'),
  retry: { initialRetryTime: 50, maxRetryTime: 400, retries: 8 },
})
const members = new Map()
let admin = null

const send = message => process.stdout.write(JSON.stringify(message) + '\n')
const encode = value => (value === null || value === undefined ? null : Buffer.from(value).toString('base64'))
const decode = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))

class OperationError extends Error {
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

function errorOf(error) {
  if (error instanceof OperationError) return { code: error.code, message: error.message }
  if (error.partitions && error.partitions.length) return errorOf(error.partitions[0].error)
  if (error.groups && error.groups.length) return errorOf(error.groups[0].error)
  if (error.errors && error.errors.length) return errorOf(error.errors[0])
  if (error.type) return { code: error.type, message: error.message }
  if (error.cause) return errorOf(error.cause)
  process.stderr.write(String(error.stack) + '\n')
  return { code: error.name || 'CLIENT', message: error.message }
}

async function getAdmin() {
  if (admin === null) {
    admin = kafka.admin()
    await admin.connect()
  }
  return admin
}

function headersOf(record) {
  const headers = {}
  for (const [name, value] of record.headers || []) {
    const decoded = decode(value)
    headers[name] = name in headers ? [].concat(headers[name], [decoded]) : decoded
  }
  return headers
}

function recordOf(topic, partition, message) {
  const headers = []
  for (const [name, value] of Object.entries(message.headers || {})) {
    for (const one of Array.isArray(value) ? value : [value]) headers.push([name, encode(one)])
  }
  return {
    topic,
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    timestamp_type: null,
    key: encode(message.key),
    value: encode(message.value),
    headers,
  }
}

const assignmentPairs = assignment =>
  Object.entries(assignment).flatMap(([topic, partitions]) => partitions.map(partition => [topic, partition]))

class Member {
  constructor(name, consumer) {
    this.name = name
    this.consumer = consumer
    this.assignment = []
  }

  changed(kind, partitions, assignment) {
    this.assignment = assignment
    send({ event: kind, member: this.name, partitions, assignment })
  }

  async start(options) {
    const { GROUP_JOIN, REBALANCING, CRASH } = this.consumer.events
    this.consumer.on(GROUP_JOIN, ({ payload }) => {
      const pairs = assignmentPairs(payload.memberAssignment)
      this.changed('assigned', pairs, pairs)
    })
    this.consumer.on(REBALANCING, () => this.changed('revoked', this.assignment, []))
    this.consumer.on(CRASH, ({ payload }) => {
      if (!payload.restart) send({ event: 'failed', member: this.name, ...errorOf(payload.error) })
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: options.topics, fromBeginning: options.reset !== 'latest' })
    await this.consumer.run({
      autoCommit: Boolean(options.auto_commit),
      eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
        const records = batch.messages.map(message => recordOf(batch.topic, batch.partition, message))
        send({ event: 'records', member: this.name, records })
        for (const message of batch.messages) resolveOffset(message.offset)
        await heartbeat()
      },
    })
  }
}

function consumerOf(options) {
  return kafka.consumer({
    groupId: options.group,
    sessionTimeout: options.session_timeout_ms || 10000,
    rebalanceTimeout: 20000,
    heartbeatInterval: 200,
    maxWaitTimeInMs: 100,
    readUncommitted: options.isolation === 'read_uncommitted',
    ...(options.max_partition_bytes ? { maxBytesPerPartition: options.max_partition_bytes, maxBytes: options.max_partition_bytes } : {}),
  })
}

let consumed = 0

const operations = {
  info: async () => ({ version }),

  async produce({ topic, records, acks = 'all', codec = 'none', idempotence = false }) {
    const chosen = new Map()
    const createPartitioner = () => {
      const choose = Partitioners.DefaultPartitioner()
      return options => {
        const partition = choose(options)
        chosen.set(options.message, partition)
        return partition
      }
    }
    const producer = kafka.producer({ createPartitioner, idempotent: idempotence })
    await producer.connect()
    try {
      const messages = records.map(record => ({
        key: decode(record.key),
        value: decode(record.value),
        headers: headersOf(record),
        ...(record.partition === null || record.partition === undefined ? {} : { partition: record.partition }),
        ...(record.timestamp === null || record.timestamp === undefined ? {} : { timestamp: String(record.timestamp) }),
      }))
      const sent = await producer.send({ topic, acks: { 0: 0, 1: 1, all: -1 }[acks], compression: CODECS[codec], messages })
      const next = new Map((sent || []).map(one => [one.partition, Number(one.baseOffset)]))
      return {
        results: messages.map(message => {
          const partition = chosen.get(message)
          if (!next.has(partition)) return { partition, offset: -1 }
          const offset = next.get(partition)
          next.set(partition, offset + 1)
          return { partition, offset }
        }),
      }
    } catch (error) {
      return { results: records.map(() => ({ error: errorOf(error) })) }
    } finally {
      await producer.disconnect()
    }
  },

  // kafkajs cannot assign: a group of its own, and a seek of every partition, come nearest.
  async consume({ topic, starts, count, timeout_ms = 20000, max_partition_bytes = null }) {
    const consumer = consumerOf({ group: `kafkajs-reader-${process.pid}-${consumed++}-${Date.now()}`, max_partition_bytes })
    const from = {}
    const low = Object.fromEntries(
      (await (await getAdmin()).fetchTopicOffsets(topic)).map(one => [one.partition, Number(one.low)]))
    for (const [partition, start] of Object.entries(starts)) {
      if (start === 'earliest') from[partition] = low[partition]
      else if (typeof start === 'object') {
        const found = await (await getAdmin()).fetchTopicOffsetsByTimestamp(topic, start.timestamp)
        from[partition] = Number(found.find(one => one.partition === Number(partition)).offset)
      } else from[partition] = start
    }
    const records = []
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new OperationError('TIMEOUT', `${records.length} of ${count} records`)), timeout_ms)
        consumer.on(consumer.events.CRASH, ({ payload }) => { clearTimeout(timer); reject(payload.error) })
        consumer.on(consumer.events.GROUP_JOIN, () => {
          for (const [partition, offset] of Object.entries(from)) {
            consumer.seek({ topic, partition: Number(partition), offset: String(offset) })
          }
        })
        consumer.run({
          autoCommit: false,
          eachBatch: async ({ batch }) => {
            if (!(batch.partition in from)) return
            for (const message of batch.messages) {
              const expected = from[batch.partition]
              if (Number(message.offset) >= expected && records.length < count) {
                from[batch.partition] = Number(message.offset) + 1
                records.push(recordOf(topic, batch.partition, message))
              }
            }
            if (records.length >= count) { clearTimeout(timer); resolve() }
          },
        }).catch(reject)
      })
      return { records }
    } finally {
      await consumer.disconnect()
    }
  },

  async member_open(options) {
    const member = new Member(options.member, consumerOf(options))
    members.set(options.member, member)
    member.start(options).catch(error => send({ event: 'failed', member: options.member, ...errorOf(error) }))
    return {}
  },

  async member_commit({ member, offsets, metadata = null }) {
    const flat = Object.entries(offsets).flatMap(([topic, byPartition]) =>
      Object.entries(byPartition).map(([partition, offset]) => ({
        topic, partition: Number(partition), offset: String(offset), metadata: metadata || '',
      })))
    await members.get(member).consumer.commitOffsets(flat)
    return {}
  },

  async member_close({ member }) {
    await members.get(member).consumer.disconnect()
    members.delete(member)
    return {}
  },

  async create_topic({ topic, partitions = 1, replication_factor = 1, configs = {} }) {
    const created = await (await getAdmin()).createTopics({
      topics: [{
        topic,
        numPartitions: partitions,
        replicationFactor: replication_factor,
        configEntries: Object.entries(configs || {}).map(([name, value]) => ({ name, value })),
      }],
    })
    if (!created) throw new OperationError('TOPIC_ALREADY_EXISTS', topic)
    return {}
  },

  async delete_topic({ topic }) {
    await (await getAdmin()).deleteTopics({ topics: [topic] })
    return {}
  },

  list_topics: async () => ({ topics: await (await getAdmin()).listTopics() }),

  async describe_topic({ topic }) {
    const { topics } = await (await getAdmin()).fetchTopicMetadata({ topics: [topic] })
    const partitions = {}
    for (const one of topics[0].partitions) {
      partitions[one.partitionId] = { leader: one.leader, replicas: one.replicas, isr: one.isr }
    }
    return { partitions }
  },

  async create_partitions({ topic, total }) {
    await (await getAdmin()).createPartitions({ topicPartitions: [{ topic, count: total }] })
    return {}
  },

  async describe_configs({ kind, name }) {
    const { resources } = await (await getAdmin()).describeConfigs({
      includeSynonyms: true,
      resources: [{ type: ConfigResourceTypes[kind.toUpperCase()], name }],
    })
    const entries = resources[0].configEntries
    return { configs: Object.fromEntries(entries.map(entry => [entry.configName, entry.configValue])) }
  },

  async alter_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    await (await getAdmin()).alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] })
    return {}
  },

  async list_groups() {
    const { groups } = await (await getAdmin()).listGroups()
    return { groups: groups.map(group => group.groupId) }
  },

  async describe_group({ group }) {
    const { groups } = await (await getAdmin()).describeGroups([group])
    const found = groups[0]
    return {
      state: found.state,
      protocol: found.protocol,
      members: found.members.map(member => {
        const decoded = member.memberAssignment.length ? AssignerProtocol.MemberAssignment.decode(member.memberAssignment) : null
        return {
          client_id: member.clientId,
          instance_id: null,
          partitions: decoded ? assignmentPairs(decoded.assignment) : [],
        }
      }),
    }
  },

  async delete_group({ group }) {
    await (await getAdmin()).deleteGroups([group])
    return {}
  },

  async group_offsets({ group }) {
    const offsets = {}
    for (const { topic, partitions } of await (await getAdmin()).fetchOffsets({ groupId: group })) {
      for (const { partition, offset, metadata } of partitions) {
        if (Number(offset) < 0) continue
        offsets[topic] = offsets[topic] || {}
        offsets[topic][partition] = { offset: Number(offset), metadata: metadata || '' }
      }
    }
    return { offsets }
  },

  async alter_group_offsets({ group, offsets }) {
    for (const [topic, byPartition] of Object.entries(offsets)) {
      const partitions = Object.entries(byPartition).map(([partition, offset]) => ({
        partition: Number(partition), offset: String(offset),
      }))
      await (await getAdmin()).setOffsets({ groupId: group, topic, partitions })
    }
    return {}
  },

  async delete_records({ topic, offsets }) {
    const partitions = Object.entries(offsets).map(([partition, offset]) => ({
      partition: Number(partition), offset: String(offset),
    }))
    // deleteTopicRecords looks for leaders in metadata that only another call loads.
    await (await getAdmin()).fetchTopicOffsets(topic)
    await (await getAdmin()).deleteTopicRecords({ topic, partitions })
    const found = await (await getAdmin()).fetchTopicOffsets(topic)
    const low = Object.fromEntries(found.map(one => [one.partition, Number(one.low)]))
    return { low_watermarks: Object.fromEntries(partitions.map(({ partition }) => [partition, low[partition]])) }
  },

  async list_offsets({ topic, at }) {
    const found = await (await getAdmin()).fetchTopicOffsets(topic)
    const offsets = {}
    for (const [partition, when] of Object.entries(at)) {
      const here = list => list.find(one => one.partition === Number(partition))
      if (when === 'earliest') offsets[partition] = Number(here(found).low)
      else if (when === 'latest') offsets[partition] = Number(here(found).high)
      else offsets[partition] = Number(here(await (await getAdmin()).fetchTopicOffsetsByTimestamp(topic, when)).offset)
    }
    return { offsets }
  },

  async describe_cluster() {
    const { clusterId, controller, brokers } = await (await getAdmin()).describeCluster()
    return {
      cluster_id: clusterId,
      controller,
      brokers: brokers.map(({ nodeId, host, port }) => ({ id: nodeId, host, port })),
    }
  },
}

Object.assign(operations, require('./transactions')({
  kafka, consumerOf, headersOf, recordOf, encode, decode, errorOf, OperationError, getAdmin,
}))

async function handle(line) {
  const { id, op, ...options } = JSON.parse(line)
  try {
    if (!(op in operations)) throw new OperationError('NO_SUCH_OPERATION', op)
    send({ id, ok: await operations[op](options) })
  } catch (error) {
    send({ id, error: errorOf(error) })
  }
}

const lines = readline.createInterface({ input: process.stdin })
lines.on('line', handle)
lines.on('close', async () => {
  await Promise.allSettled([...members.values()].map(member => member.consumer.disconnect()))
  process.exit(0)
})
