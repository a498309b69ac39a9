# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""A reader of Perfetto's traces by python3-protobuf, that takes them as trace_processor does: clocks
and names are those of a sequence, slices of a track are a stack in order of time. Raises on what
that would drop."""


class Slice:
	def __init__(self, track, name, start, categories, flows, notes, parent):
		self.track, self.name, self.start, self.end = track, name, start, None
		self.categories, self.flows, self.notes = categories, flows, notes
		self.parent, self.order = parent, None

	def depth(self):
		return 1 + self.parent.depth() if self.parent else 1


class Sequence:
	def __init__(self):
		self.now = None
		self.clock = None
		self.category, self.event, self.note = {}, {}, {}


class Trace:
	"""path: of a file; pb: the module that protoc made."""
	def __init__(self, path, pb):
		self.tracks, self.slices, self.instants, self.counters = {}, [], [], {}
		self.pb = pb
		self.slice_bytes = 0	# of packets that begin or end one, with their names
		with open(path, "rb") as f:
			data = f.read()
		self.size = len(data)
		trace = pb.Trace.FromString(data)
		# Nothing else is in it, and nothing twice.
		if len(trace.SerializeToString()) != len(data) or list(trace.UnknownFields()):
			raise ValueError("other fields than those of trace.proto")
		sequences, events = {}, []
		for packet in trace.packet:
			sequence = sequences.setdefault(packet.trusted_packet_sequence_id, Sequence())
			self.packet(sequence, packet, events)
		# By time; those of one time as they are in the file.
		events.sort(key=lambda e: e[0])
		stacks = {}
		for now, event, sequence in events:
			self.event(now, event, sequence, stacks)
		if any(stacks.values()):
			raise ValueError("slices that do not end")

	def packet(self, sequence, packet, events):
		if packet.sequence_flags & 1:
			sequence.__init__()
			clocks = {c.clock_id: c for c in packet.clock_snapshot.clocks}
			own = clocks[packet.trace_packet_defaults.timestamp_clock_id]
			if not 64 <= own.clock_id < 128 or not own.is_incremental:
				raise ValueError("clock")
			if clocks[6].timestamp != own.timestamp:
				raise ValueError("two clocks")
			sequence.now = own.timestamp
		elif not packet.sequence_flags & 2 or sequence.now is None:
			raise ValueError("packet before the state that it needs")
		if packet.HasField("timestamp"):
			sequence.now += packet.timestamp
		for field, to in (("event_categories", sequence.category), ("event_names", sequence.event),
				  ("debug_annotation_names", sequence.note)):
			for entry in getattr(packet.interned_data, field):
				if not entry.iid or entry.iid in to:
					raise ValueError("a name twice")
				to[entry.iid] = entry.name
		if packet.HasField("track_descriptor"):
			track = packet.track_descriptor
			if track.uuid in self.tracks:
				raise ValueError("a track twice")
			self.tracks[track.uuid] = track
		if packet.HasField("track_event"):
			if not packet.HasField("timestamp"):
				raise ValueError("an event without a time")
			events.append((sequence.now, packet.track_event, sequence))
			if packet.track_event.type in (1, 2):
				self.slice_bytes += packet.ByteSize() + 2

	def event(self, now, event, sequence, stacks):
		kind = self.pb.TrackEvent
		if event.track_uuid not in self.tracks:
			raise ValueError("an event of no track")
		notes = {}
		for a in event.debug_annotations:
			notes[sequence.note[a.name_iid]] = a.uint_value or a.pointer_value
		stack = stacks.setdefault(event.track_uuid, [])
		if event.type == kind.TYPE_SLICE_BEGIN:
			s = Slice(event.track_uuid, sequence.event[event.name_iid], now,
				  [sequence.category[c] for c in event.category_iids],
				  list(event.flow_ids), notes, stack[-1] if stack else None)
			s.order = len(self.slices)
			self.slices.append(s)
			stack.append(s)
		elif event.type == kind.TYPE_SLICE_END:
			s = stack.pop()
			s.end = now
			s.notes.update(notes)
		elif event.type == kind.TYPE_INSTANT:
			self.instants.append((now, event.name))
		elif event.type == kind.TYPE_COUNTER:
			if not self.tracks[event.track_uuid].HasField("counter"):
				raise ValueError("a counter that is none")
			self.counters.setdefault(event.track_uuid, []).append(
				(now, event.double_counter_value))
		else:
			raise ValueError("type %d" % event.type)

	def name(self, uuid):
		track = self.tracks[uuid]
		return track.thread.thread_name or track.process.process_name or track.name

	def process(self, uuid):
		"""Name of the process that a track is of."""
		track = self.tracks[uuid]
		pid = track.thread.pid or track.process.pid
		for t in self.tracks.values():
			if t.HasField("process") and (t.process.pid == pid or
						      t.uuid == track.parent_uuid):
				return t.process.process_name
		return None
